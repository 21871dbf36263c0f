"""``give_classes`` to namespaces: a ClassPlan stored in few statements; a brake on deletions."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from policies.managed_fields import CLASS
from policies.models import ClassMember, ClassPolicy, Namespace, NamespaceClass, PolicyRevision
from policies.services.brake import brake
from policies.services.bulk_change import change_many
from policies.services.bulk_create import store_new
from policies.services.classes.plan import plan_namespaces
from policies.services.field_managers import FieldWriter, managed_by
from policies.services.manifests import KINDS
from policies.services.policies import delete_policy
from policies.services.write import Action, followers, in_bulk, lock_used, policy_write

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from policies.models import Cluster
    from policies.services.classes.plan import ClassPlan
    from policies.services.write import Key

WINDOW: Final = dt.timedelta(hours=1)
"""Deletions of a class within this time count together: namespaces may leave one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was done: policies made, changed and removed, and deletions held for a person."""

    made: int = 0
    changed: int = 0
    removed: int = 0
    held: int = 0


def give_classes(  # noqa: PLR0913 - all but two by name
    cluster: Cluster,
    namespaces: Sequence[Namespace],
    *,
    user: str,
    reason: str = "",
    classes: Sequence[NamespaceClass] | None = None,
    confirmed: bool = False,
) -> Given:
    """Give namespaces of a cluster what their classes say, inside ``policy_write``.

    ``confirmed``: a person has agreed to the deletions, however many.
    """
    if not namespaces:
        return Given()
    known = list(NamespaceClass.objects.all()) if classes is None else list(classes)
    planned = plan_namespaces(cluster, namespaces, known)
    with policy_write(cluster), in_bulk():
        _lock(cluster, planned)
        names = {each.pk: each for each in known}
        for stored in known:
            author = (user, reason or f"class {stored.name}, version {stored.version}")
            with managed_by(writer_of_class(stored.name)):
                store_new(cluster, planned.news.get(stored.name, []), author=author)
                change_many(cluster, planned.changes.get(stored.name, []), author=author)
        removed, held = _remove(planned, names, user=user, confirmed=confirmed)
        _note(planned, held)
    return Given(
        made=sum(map(len, planned.news.values())),
        changed=sum(map(len, planned.changes.values())),
        removed=removed,
        held=sum(len(planned.removals[pk]) for pk in held),
    )


def writer_of_class(name: str) -> FieldWriter:
    """The field manager of a class's writes."""
    return FieldWriter(f"{CLASS}{name}")


def _lock(cluster: Cluster, planned: ClassPlan) -> None:
    """Lock the used amounts of all quotas that are written, in one order, as decisions do."""
    places = {change.key[1] for each in planned.changes.values() for change in each}
    removals = (stored for each in planned.removals.values() for _, stored in each)
    places |= {stored.namespace_name for stored in removals}
    if places:
        lock_used(cluster, places)


def _remove(
    planned: ClassPlan, classes: Mapping[int, NamespaceClass], *, user: str, confirmed: bool
) -> tuple[int, set[int]]:
    """Delete what leaves; returns the number, and the classes whose deletions are held."""
    removed, held = 0, set[int]()
    for pk, removals in planned.removals.items():
        name = classes[pk].name
        if not confirmed and is_braked(classes[pk], len(removals)):
            held.add(pk)
            continue
        with managed_by(writer_of_class(name)):
            for _, stored in removals:
                delete_policy(policy=stored, user=user, reason=f"left class {name}")
        planned.released += [row for row, _ in removals]
        removed += len(removals)
    return removed, held


def is_braked(stored: NamespaceClass, deletions: int) -> bool:
    """Whether a person must confirm so many deletions, with those of the last hour."""
    lately = PolicyRevision.objects.filter(
        manager=f"{CLASS}{stored.name}",
        action=Action.DELETE,
        created__gt=timezone.now() - WINDOW,
    ).count()
    known = ClassPolicy.objects.filter(namespace_class=stored).count()
    return brake(deletions + lately, known + lately)


def _note(planned: ClassPlan, held: Collection[int]) -> None:
    """Remember who has what from which class."""
    ClassPolicy.objects.filter(pk__in=[row.pk for row in planned.released]).delete()
    for version, ids in planned.rows_at.items():
        ClassPolicy.objects.filter(pk__in=ids).update(version=version)
    for version, ids in planned.members_at.items():
        ClassMember.objects.filter(pk__in=ids).update(version=version)
    ClassPolicy.objects.bulk_create(
        planned.rows,
        update_conflicts=True,
        unique_fields=["namespace", "kind", "name"],
        update_fields=[
            "namespace_class", "version", "was_made", "exceptions", "exception_count"
        ],
        batch_size=1000,
    )  # fmt: skip
    ClassMember.objects.bulk_create(
        planned.members,
        update_conflicts=True,
        unique_fields=["namespace_class", "namespace"],
        update_fields=["version", "has_left", "problems"],
        batch_size=1000,
    )
    waiting = {(row.namespace_class_id, row.namespace_id)
               for pk in held for row, _ in planned.removals[pk]}  # fmt: skip
    stays: list[int] = []
    goes: list[int] = []
    for member in planned.leaving:
        waits = (member.namespace_class_id, member.namespace_id) in waiting
        (stays if waits else goes).append(member.pk)
    ClassMember.objects.filter(pk__in=stays).update(has_left=True)
    ClassMember.objects.filter(pk__in=goes).delete()


def follow_writes(cluster: Cluster, written: Mapping[Key, str]) -> None:
    """Give namespaces that became known or changed what they get, before their write ends.

    Also note as exceptions what was changed of policies that a class gave.
    """
    if cluster.pk is None:
        return  # it has been deleted, with all that it had
    names = {name for kind, _, name in written if kind == Namespace.kind}
    policies = [key for key in written if key[0] in KINDS]
    if policies:
        kinds, places, policy_names = (set(part) for part in zip(*policies, strict=True))
        of_classes = ClassPolicy.objects.filter(
            namespace__cluster=cluster,
            kind__in=kinds,
            namespace__name__in=places,
            name__in=policy_names,
        )
        names |= set(of_classes.values_list("namespace__name", flat=True))
    if not names:
        return
    classes = list(NamespaceClass.objects.all())
    # Members of a class that was deleted meanwhile have gone with it.
    if classes:
        namespaces = list(Namespace.objects.filter(cluster=cluster, name__in=names).order_by("id"))
        user = next(iter(written.values()))
        give_classes(cluster, namespaces, user=user, classes=classes)


followers.append(follow_writes)
