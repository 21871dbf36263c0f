"""What every write has in common: the cluster's lock, the stale check, the record, the count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db.models import F, Max

from policies import policy_set
from policies.lints import Lint, lint_namespace
from policies.models import Cluster, PolicyRevision, PriorityClass, Recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

Action = PolicyRevision.Action


class StaleRevisionError(Exception):
    """Somebody else wrote the object since it was read."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(
            f"the object was changed meanwhile: revision {expected} was expected, "
            f"it is at {found}; read it again"
        )
        self.expected = expected
        self.found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a write did: the object, its revision (None where nothing changed), and hints."""

    instance: Any
    revision: PolicyRevision | None
    lints: tuple[Lint, ...] = field(default=())

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.revision is not None


def lock_cluster(cluster: Cluster) -> None:
    """Let one writer of a cluster's policies in at a time; charges do not wait for it."""
    Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)


def stored_version(instance: Recorded) -> Any:
    """Read the object again as it is stored, or None when it is new."""
    model = type(instance)
    return model.objects.filter(pk=instance.pk).first() if instance.pk else None


def check_fresh(stored: Recorded | None, expected: int | None) -> None:
    """Refuse a write that was made looking at another revision."""
    found = stored.revision if stored else 0
    if expected is not None and expected != found:
        raise StaleRevisionError(expected=expected, found=found)


def check_identity(stored: Recorded | None, instance: Recorded) -> None:
    """Refuse to rename or move what exists: its history goes by its name."""
    if stored is None:
        return
    was = (stored.owner.pk, stored.namespace_name, stored.name)
    if was != (instance.owner.pk, instance.namespace_name, instance.name):
        message = "may not be changed after creation; make a new object and delete this one"
        raise ValidationError({"name": ValidationError(message, code="immutable")})


def next_number(instance: Recorded) -> int:
    """Count on from the last revision of that name, deleted predecessors included."""
    return (
        _last_number(
            cluster=instance.owner.name,
            namespace=instance.namespace_name,
            kind=instance.kind,
            name=instance.name,
        )
        + 1
    )


def _last_number(**names: str) -> int:
    found = PolicyRevision.objects.filter(**names).aggregate(last=Max("number"))["last"]
    return found or 0


def put_on_record(
    instance: Recorded,
    *,
    action: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    author: tuple[str, str],
) -> PolicyRevision:
    """Write the revision, and count the cluster's write. ``author`` is user and reason."""
    names = {
        "cluster": instance.owner.name,
        "namespace": instance.namespace_name,
        "kind": instance.kind,
        "name": instance.name,
    }
    return record(
        instance.owner,
        {**names, "uid": str(instance.uid), "action": action, "before": before, "after": after},
        author=author,
    )


def record(cluster: Cluster, fields: dict[str, Any], *, author: tuple[str, str]) -> PolicyRevision:
    """Write one revision from its fields; its number is the next of that name."""
    names = {key: fields[key] for key in ("cluster", "namespace", "kind", "name")}
    user, reason = author
    revision = PolicyRevision.objects.create(
        **fields, number=_last_number(**names) + 1, user=user, reason=reason
    )
    Cluster.objects.filter(pk=cluster.pk).update(policy_revision=F("policy_revision") + 1)
    return revision


def lint(cluster: Cluster, namespace: str) -> tuple[Lint, ...]:
    """Look at all policies of a namespace together; only hints."""
    classes = PriorityClass.objects.filter(cluster=cluster).values_list("name", flat=True)
    found = policy_set.load(cluster.name, namespace)
    return lint_namespace(found, priority_classes=frozenset(classes))
