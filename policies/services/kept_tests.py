"""``save_kept_test``, ``delete_kept_test``: bounded number of each namespace, with revisions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError

from policies.models import KeptTest
from policies.models.kept.kept_test import MOST_TESTS
from policies.services.write import (
    Action,
    Saved,
    check_fresh,
    check_identity,
    is_in_bulk,
    next_number,
    policy_write,
    record_object,
    stored_version,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from policies.models import Cluster
    from policies.services.write import Key

TOO_MANY = "too_many_tests"


def save_kept_test(
    *,
    test: KeptTest,
    user: str,
    reason: str = "",
    expected_revision: int | None = None,
    action: str = "",
) -> Saved:
    """Save a test; an unchanged one leaves no revision.

    Raises ``ValidationError`` (``too_many_tests`` where the namespace has ``MOST_TESTS``) and
    ``StaleRevisionError``.
    """
    with policy_write(test.owner):
        stored: KeptTest | None = stored_version(test)
        check_fresh(stored, expected_revision)
        check_identity(stored, test)
        test.full_clean(validate_constraints=not is_in_bulk())
        if stored is None:
            _require_room(test)
            test.author = user
        before, after = stored.to_manifest() if stored else None, test.to_manifest()
        revision = None
        if before != after:
            test.revision = next_number(test)
            test.save()
            revision = record_object(
                test,
                action=action or (Action.UPDATE if stored else Action.CREATE),
                before=before,
                after=after,
                author=(user, reason),
            )
    return Saved(instance=test, revision=revision)


def _require_room(test: KeptTest) -> None:
    if KeptTest.objects.filter(namespace=test.namespace).count() >= MOST_TESTS:
        raise too_many(test.namespace_name)


def too_many(namespace: str) -> ValidationError:
    """The error of one test more than a namespace may have."""
    message = f"namespace {namespace} has {MOST_TESTS} tests, the maximum: delete some first"
    return ValidationError({"metadata.name": ValidationError(message, code=TOO_MANY)})


def overfull(cluster: Cluster, new: Collection[Key]) -> set[str]:
    """The namespaces that would have too many tests with these new ones; one query, or none."""
    wanted = Counter(namespace for kind, namespace, _ in new if kind == KeptTest.kind)
    if not wanted:
        return set()
    stored = KeptTest.objects.filter(namespace__cluster=cluster, namespace__name__in=wanted)
    counts = Counter(stored.order_by().values_list("namespace__name", flat=True))
    return {name for name, number in wanted.items() if number + counts[name] > MOST_TESTS}


def delete_kept_test(
    *, test: KeptTest, user: str, reason: str = "", expected_revision: int | None = None
) -> Saved:
    """Delete a test; its revisions stay."""
    with policy_write(test.owner):
        stored: KeptTest | None = stored_version(test)
        check_fresh(stored, expected_revision)
        before = stored.to_manifest() if stored else None
        revision = record_object(
            test, action=Action.DELETE, before=before, after=None, author=(user, reason)
        )
        # By a query: deleting the instance would clear its key.
        KeptTest.objects.filter(pk=test.pk).delete()
    return Saved(instance=test, revision=revision)
