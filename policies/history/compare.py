"""``compare``: what differs between two instants, object by object, in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from policies.history.objects import POLICY_KINDS, in_force, objects_of, revisions_at
from policies.managed_fields import changed_fields
from policies.manifests import diff_in_words
from policies.models import PolicyRevision

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Mapping, Sequence

    from policies.history.objects import PastObject
    from policies.models.edits import PolicyRevisionQuerySet

COMPARED_KINDS: Final = (
    *("Cluster", "ResourceQuotaConfiguration", "PriorityClass", "Namespace"),
    *POLICY_KINDS,
)
_FEW: Final = 300
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDifference:
    """An object that differs; ``before`` or ``after`` is None where it was not there.

    ``written`` is the newest of the revisions that made the two, None of what has none: usage,
    roles. ``amounts`` are the paths of usage that differ.
    """

    cluster: str
    namespace: str
    kind: str
    name: str
    words: Sequence[str]
    amounts: Sequence[str] = ()
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    written: PastObject | None = None

    @property
    def fields(self) -> Sequence[str]:
        """The paths that differ; none where the whole came or went.

        Found when they are asked for: to read both manifests costs more than all else of a
        difference, and of thousands a page shows fifty.
        """
        if self.amounts or not self.before or not self.after:
            return self.amounts
        return sorted(changed_fields(self.before, self.after))


def compare(
    clusters: Collection[str], begin: dt.datetime, end: dt.datetime, *, namespace: str = ""
) -> list[PastDifference]:
    """The objects that differ between two instants, by place; of one namespace if it is named.

    Seven queries for any number of clusters. Only what was written in between is looked at, and
    only what differs is read as a whole.
    """
    first, last = sorted((begin, end))
    writes = revisions_at(clusters, first)
    after = _written(writes, revisions_at(clusters, last), namespace)
    before = _before(writes, after)
    changed = {key for key, pk in after.items() if pk != before.get(key)}
    wanted = [pk for ids in (before, after) for key in changed if (pk := ids.get(key))]
    rows = PolicyRevision.objects.filter(pk__in=wanted).order_by().defer("before")
    found = {each.id: each for each in objects_of(rows)}
    earlier, later = (before, after) if begin <= end else (after, before)
    differences = [
        _difference(key, found.get(earlier.get(key) or 0), found.get(later.get(key) or 0))
        for key in sorted(changed)
    ]
    # What was changed and changed back is no difference.
    return [each for each in differences if each.words]


def _written(
    since: Mapping[str, int], until: Mapping[str, int], namespace: str
) -> dict[_Key, int | None]:
    """The newest revision between two numbers of writes, of each object; None of a deletion."""
    between = reduce(
        or_,
        (
            Q(cluster=name, cluster_revision__gt=since.get(name, 0), cluster_revision__lte=number)
            for name, number in until.items()
        ),
        Q(pk__in=[]),
    )
    rows = PolicyRevision.objects.filter(between, kind__in=COMPARED_KINDS)
    if namespace:
        rows = rows.filter(Q(namespace=namespace) | Q(kind="Namespace", name=namespace))
    columns = rows.order_by("pk").values_list(
        "cluster", "namespace", "kind", "name", "pk", "action"
    )
    return {
        (cluster, place, kind, name): None if action == PolicyRevision.Action.DELETE else pk
        for cluster, place, kind, name, pk, action in columns
    }


def _before(writes: Mapping[str, int], keys: Collection[_Key]) -> dict[_Key, int]:
    """The revisions that made some objects, as they were after so many writes."""
    rows: PolicyRevisionQuerySet = in_force(
        writes,
        kinds={kind for _, _, kind, _ in keys},
        namespaces=_few({namespace for _, namespace, _, _ in keys}),
        names=_few({name for _, _, _, name in keys}),
    )
    columns = rows.values_list("cluster", "namespace", "kind", "name", "pk")
    # The sets may match further objects.
    return {key: pk for *place, pk in columns if (key := _key(*place)) in keys}


def _few(names: Collection[str]) -> Collection[str] | None:
    """Names to look for one by one; None where all are read faster."""
    return names if len(names) <= _FEW else None


def _key(cluster: str, namespace: str, kind: str, name: str) -> _Key:
    return cluster, namespace, kind, name


def _difference(key: _Key, before: PastObject | None, after: PastObject | None) -> PastDifference:
    cluster, namespace, kind, name = key
    old, new = (each.manifest if each else None for each in (before, after))
    return PastDifference(
        cluster=cluster,
        namespace=namespace,
        kind=kind,
        name=name,
        words=diff_in_words.changes(old, new),
        before=old,
        after=new,
        written=after or before,
    )
