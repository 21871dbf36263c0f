"""Objects as of an instant, from their revisions: ``policies_at``, ``namespaces_at``, ``in_force``.

The rule: a write of a cluster counts from the time of its last row on. Writes of a cluster follow
each other, so that its revisions up to the last such write are its state; a clock that was set back
cannot bring them out of their order. What the revisions say, the write itself has checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from django.db import connection
from django.db.models import Max, Q

from policies.models import Namespace, NamespaceClassVersion, PolicyRevision

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from policies.models.edits import PolicyRevisionQuerySet

POLICY_KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")
_DELETE: Final = PolicyRevision.Action.DELETE
_LAST_WRITES: Final = "WITH known (name) AS (VALUES {names}) SELECT name, {numbers} FROM known"
_LAST_WRITE: Final = """(
  SELECT MAX(cluster_revision) FROM policies_policyrevision
  WHERE cluster = known.name AND created <= %s
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastObject:
    """An object as one of its revisions left it; ``number`` and ``id`` are the revision's."""

    cluster: str
    kind: str
    namespace: str
    name: str
    uid: str
    number: int
    id: int
    written: dt.datetime
    user: str
    reason: str
    manifest: Mapping[str, Any]


def revisions_at(clusters: Collection[str], instant: dt.datetime) -> dict[str, int]:
    """How many writes of each cluster were done at an instant; two queries for any number.

    Clusters without a write by then are left out.
    """
    [found] = revisions_at_each(clusters, [instant])
    return found


def revisions_at_each(
    clusters: Collection[str], instants: Sequence[dt.datetime]
) -> list[dict[str, int]]:
    """The same at several instants, in their order; two queries for any number of them."""
    begun = _begun(clusters, instants)
    last_writes = {write for each in begun for write in each.items()}
    if not last_writes:
        return begun
    any_of = reduce(or_, (Q(cluster=name, cluster_revision=number) for name, number in last_writes))
    rows = PolicyRevision.objects.filter(any_of, created__gt=min(instants)).order_by()
    last_rows = rows.values_list("cluster", "cluster_revision").annotate(last=Max("created"))
    ends = {(name, number): last for name, number, last in last_rows}
    # A write whose rows are not all there yet is still under way, and leaves what was before it.
    return [
        {name: number - (ends.get((name, number), at) > at) for name, number in each.items()}
        for at, each in zip(instants, begun, strict=True)
    ]


def _begun(clusters: Collection[str], instants: Sequence[dt.datetime]) -> list[dict[str, int]]:
    """The last write of each cluster of which a row was there, at each of some instants.

    The index by cluster and write is read backwards, down to the first row that is old enough;
    grouped, the database would read all revisions. Django cannot select from a list of values.
    """
    if not clusters:
        return [{} for _ in instants]
    names = ", ".join(["(%s)"] * len(clusters))
    numbers = ", ".join([_LAST_WRITE] * len(instants))
    moments = [connection.ops.adapt_datetimefield_value(each) for each in instants]
    with connection.cursor() as cursor:
        cursor.execute(_LAST_WRITES.format(names=names, numbers=numbers), [*clusters, *moments])
        rows = cursor.fetchall()
    columns = range(1, len(instants) + 1)
    return [{row[0]: row[each] for row in rows if row[each] is not None} for each in columns]


def revision_at(cluster: str, instant: dt.datetime) -> int:
    """How many writes of a cluster were done at an instant; 0: none."""
    return revisions_at([cluster], instant).get(cluster, 0)


def reached(writes: Mapping[str, int]) -> Q:
    """The revisions of so many writes of each cluster."""
    return reduce(
        or_,
        (Q(cluster=name, cluster_revision__lte=number) for name, number in writes.items()),
        Q(pk__in=[]),
    )


def in_force(
    writes: Mapping[str, int],
    *,
    kinds: Collection[str],
    namespaces: Collection[str] | None = None,
    names: Collection[str] | None = None,
) -> PolicyRevisionQuerySet:
    """The revisions that made the objects that were there after so many writes of each cluster.

    One statement, when it is read; narrow, order and slice it like any other. What was before a
    revision is not read: nobody asks it of the past.
    """
    rows = PolicyRevision.objects.filter(reached(writes), kind__in=kinds)
    if namespaces is not None:
        rows = rows.filter(namespace__in=namespaces)
    if names is not None:
        rows = rows.filter(name__in=names)
    # One writer at a time: within a cluster later writes have larger ids.
    newest = rows.order_by().values("cluster", "kind", "namespace", "name")
    ids = newest.annotate(newest=Max("pk")).values("newest")
    found: PolicyRevisionQuerySet = (
        PolicyRevision.objects.filter(pk__in=ids)
        .exclude(action=_DELETE)
        .defer("before")
        .order_by("cluster", "namespace", "kind", "name")
    )
    return found


def objects_of(revisions: Iterable[PolicyRevision]) -> list[PastObject]:
    """The objects that revisions left."""
    return [
        PastObject(
            cluster=each.cluster,
            kind=each.kind,
            namespace=each.namespace,
            name=each.name,
            uid=each.uid,
            number=each.number,
            id=each.pk,
            written=each.created,
            user=each.user,
            reason=each.reason,
            manifest=each.after or {},
        )
        for each in revisions
    ]


def policies_at(
    cluster: str, instant: dt.datetime, *, namespaces: Collection[str] | None = None
) -> list[PastObject]:
    """The policies of a cluster, or of some of its namespaces, at an instant."""
    writes = revisions_at([cluster], instant)
    return objects_of(in_force(writes, kinds=POLICY_KINDS, namespaces=namespaces))


def namespaces_at(cluster: str, instant: dt.datetime) -> list[PastObject]:
    """The namespaces of a cluster at an instant, by name."""
    return objects_of(in_force(revisions_at([cluster], instant), kinds=[Namespace.kind]))


def class_versions_at(instant: dt.datetime) -> QuerySet[NamespaceClassVersion]:
    """The namespace classes at an instant, each by its version then, by name."""
    done = NamespaceClassVersion.objects.filter(created__lte=instant).order_by()
    newest = done.values("name").annotate(newest=Max("pk")).values("newest")
    found = NamespaceClassVersion.objects.filter(pk__in=newest).exclude(manifest=None)
    return found.order_by("name")
