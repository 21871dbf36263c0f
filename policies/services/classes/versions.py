"""``save_class``, ``delete_class``, their previews: a version given to all namespaces at once."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from engine.namespace_class import OnLeave, decode_namespace_class
from policies.models import (
    ClassMember,
    ClassPolicy,
    Cluster,
    Namespace,
    NamespaceClass,
    NamespaceClassVersion,
    QuotaUsage,
)
from policies.services.classes.carry_out import Given, give_classes, is_braked
from policies.services.classes.plan import matching, plan_namespaces
from policies.services.classes.preview import concerned, covering_nothing, read_class
from policies.services.write import Action, StaleRevisionError, policy_write, record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BRAKED = "deletions_need_confirmation"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedClass:
    """The result of a write: the class, whether it has a new version, and what that did."""

    instance: NamespaceClass
    changed: bool
    given: Given = field(default_factory=Given)


def save_class(
    *,
    manifest: Any,
    user: str,
    reason: str = "",
    expected_version: int | None = None,
    confirmed: int = 0,
) -> SavedClass:
    """Store a class and give it to all its namespaces, in one transaction.

    ``expected_version`` is that of the last one read (0: none yet); ``confirmed`` the number of
    deletions that a person agreed to, where they are many. Raises ``ValidationError`` and
    ``StaleRevisionError``.
    """
    checked = read_class(manifest)
    name = checked["metadata"]["name"]
    with classes_written():
        stored = NamespaceClass.objects.filter(name=name).first()
        _require_fresh(stored, expected_version)
        if stored is not None and stored.manifest == checked:
            return SavedClass(instance=stored, changed=False)
        instance = stored or NamespaceClass(name=name)
        before = dict(stored.manifest) if stored else None
        instance.version = _last_version(name) + 1
        instance.read_manifest(checked)
        instance.save()
        NamespaceClassVersion.objects.create(
            name=name, number=instance.version, user=user, reason=reason, manifest=checked
        )
        _record_in_clusters(before, checked, author=(user, reason))
        given = _give_everywhere(instance, user=user, reason=reason, confirmed=confirmed)
    return SavedClass(instance=instance, changed=True, given=given)


def delete_class(
    *,
    stored: NamespaceClass,
    user: str,
    reason: str = "",
    expected_version: int | None = None,
    confirmed: int = 0,
) -> Given:
    """Delete a class; all its namespaces leave it. Raises as ``save_class`` does."""
    with classes_written():
        fresh = NamespaceClass.objects.filter(pk=stored.pk).first()
        _require_fresh(fresh, expected_version)
        if fresh is None:
            return Given()
        _record_in_clusters(fresh.manifest, None, author=(user, reason))
        fresh.manifest = covering_nothing(fresh.manifest)
        given = _give_everywhere(fresh, user=user, reason=reason, confirmed=confirmed)
        number = _last_version(fresh.name) + 1
        NamespaceClassVersion.objects.create(
            name=fresh.name, number=number, user=user, reason=reason, manifest=None
        )
        NamespaceClass.objects.filter(pk=fresh.pk).delete()
    return given


def confirm_leaving(*, stored: NamespaceClass, user: str, count: int) -> Given:
    """Delete what was held when namespaces left; ``count`` is the number that a person saw."""
    with classes_written():
        _require_confirmed(stored, _held(stored), count, is_exact=True)
        left = ClassMember.objects.filter(namespace_class=stored, has_left=True)
        places = Namespace.objects.filter(class_members__in=left).order_by("id")
        total = Given()
        for cluster in Cluster.objects.filter(namespaces__in=places).distinct().order_by("id"):
            total = _sum(
                total,
                give_classes(cluster, list(places.filter(cluster=cluster)), user=user,
                             confirmed=True),
            )  # fmt: skip
    return total


def held_deletions(stored: NamespaceClass) -> int:
    """How many deletions wait for a person."""
    return _held(stored) if stored.members.filter(has_left=True).exists() else 0


def _held(stored: NamespaceClass) -> int:
    left = stored.members.filter(has_left=True).values("namespace")
    return ClassPolicy.objects.filter(
        namespace_class=stored, namespace__in=left, was_made=True, exception_count=0
    ).count()


def _give_everywhere(stored: NamespaceClass, *, user: str, reason: str, confirmed: int) -> Given:
    places_of = list(concerned(stored))
    others = [each for each in NamespaceClass.objects.all() if each.pk != stored.pk]
    classes = [*others, stored]
    removals = sum(
        len(plan_namespaces(cluster, places, classes).removals.get(stored.pk, ()))
        for cluster, places in places_of
        if _may_remove(stored, places)
    )
    _require_confirmed(stored, removals, confirmed)
    why = f"class {stored.name}, version {stored.version}" + (f": {reason}" if reason else "")
    total = Given()
    for cluster, places in places_of:
        given = give_classes(
            cluster, places, user=user, reason=why, classes=classes, confirmed=True
        )
        total = _sum(total, given)
    return total


def _record_in_clusters(
    before: dict[str, Any] | None, after: dict[str, Any] | None, *, author: tuple[str, str]
) -> None:
    """Record the write in the history of each cluster that the class is for, or was.

    So that it gets a new revision: snapshots read the selectors of classes again.
    """
    values = [decode_namespace_class(each) for each in (before, after) if each]
    update = Action.UPDATE if before and after else Action.CREATE if after else Action.DELETE
    for cluster in Cluster.objects.order_by("id"):
        if any(each.covers(cluster.name) for each in values):
            fields = {
                "cluster": cluster.name,
                "namespace": "",
                "kind": NamespaceClass.kind,
                "name": values[-1].name,
                "action": update,
                "before": before,
                "after": after,
            }
            record(cluster, fields, author=author)


def _may_remove(stored: NamespaceClass, places: Sequence[Namespace]) -> bool:
    """Whether a plan could have removals at all: most versions need not be planned twice."""
    if stored.value.on_leave is not OnLeave.REMOVE:
        return False
    listed = {(each["kind"], each["metadata"]["name"]) for each in stored.value.policies}
    rows = ClassPolicy.objects.filter(namespace_class=stored)
    if set(rows.values_list("kind", "name").distinct().order_by()) - listed:
        return True
    members = set(stored.members.values_list("namespace_id", flat=True))
    by_cluster = {each.pk: each for each in places}
    value = stored.value
    return any(
        not matching([(stored, value)], by_cluster[pk].cluster, by_cluster[pk])
        for pk in members & by_cluster.keys()
    )


def _require_confirmed(
    stored: NamespaceClass, deletions: int, confirmed: int, *, is_exact: bool = False
) -> None:
    """Raise ``ValidationError`` unless a person has agreed to that many deletions."""
    if deletions == confirmed or (not is_exact and not is_braked(stored, deletions)):
        return
    message = (
        f"{deletions} policies would be deleted, which is many: confirm the number {deletions}"
        if deletions
        else "no deletions await confirmation: read it again"
    )
    raise ValidationError(message, code=BRAKED)


def _sum(one: Given, other: Given) -> Given:
    return Given(
        made=one.made + other.made,
        changed=one.changed + other.changed,
        removed=one.removed + other.removed,
        held=one.held + other.held,
    )


def _last_version(name: str) -> int:
    last = NamespaceClassVersion.objects.filter(name=name).aggregate(last=Max("number"))["last"]
    return last or 0


def _require_fresh(stored: NamespaceClass | None, expected: int | None) -> None:
    found = stored.version if stored else 0
    if expected is not None and expected != found:
        raise StaleRevisionError(expected=expected, found=found)


@contextmanager
def classes_written() -> Iterator[None]:
    """Write all clusters in one transaction.

    From the last cluster to the first, so that their rows are written from the first to the last,
    in the order in which decisions lock them; and all used amounts before, for the same reason.
    """
    with transaction.atomic(), ExitStack() as writes:
        clusters = list(Cluster.objects.order_by("-id"))
        for cluster in clusters:
            writes.enter_context(policy_write(cluster))
        if len(clusters) > 1:
            of_classes = ClassPolicy.objects.filter(kind="ResourceQuota").values("namespace__name")
            used = QuotaUsage.objects.filter(namespace__in=of_classes).order_by("quota_id")
            list(used.select_for_update(no_key=True).values_list("quota_id"))
        yield
