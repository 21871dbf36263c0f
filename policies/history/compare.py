"""``compare``: what differs between two instants, object by object, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDifference:
    """An object that differs; ``before`` or ``after`` is None where it was not there.

    ``written`` is the newest of the revisions that made the two, None of what has none: usage,
    roles.
    """

    cluster: str
    namespace: str
    kind: str
    name: str
    words: Sequence[str]
    fields: Sequence[str] = ()
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    written: PastObject | None = None


def compare(
    clusters: Collection[str], begin: dt.datetime, end: dt.datetime, *, namespace: str = ""
) -> list[PastDifference]:
    """The objects that differ between two instants, by place; of one namespace if it is named.

    Six queries for any number of clusters; only what differs is read as a whole.
    """
    earlier, later = (_ids_at(clusters, instant, namespace) for instant in (begin, end))
    changed = {key for key in earlier.keys() | later.keys() if earlier.get(key) != later.get(key)}
    wanted = [ids[key] for ids in (earlier, later) for key in changed if key in ids]
    found = {each.id: each for each in objects_of(PolicyRevision.objects.filter(pk__in=wanted))}
    differences = [
        _difference(key, found.get(earlier.get(key, 0)), found.get(later.get(key, 0)))
        for key in sorted(changed)
    ]
    # What was changed and changed back is no difference.
    return [each for each in differences if each.words]


def _ids_at(clusters: Collection[str], instant: dt.datetime, namespace: str) -> dict[_Key, int]:
    rows: PolicyRevisionQuerySet = in_force(revisions_at(clusters, instant), kinds=COMPARED_KINDS)
    columns = rows.values_list("cluster", "namespace", "kind", "name", "pk")
    return {
        (cluster, place, kind, name): pk
        for cluster, place, kind, name, pk in columns
        if not namespace or namespace in (place, name if kind == "Namespace" else None)
    }


def _difference(key: _Key, before: PastObject | None, after: PastObject | None) -> PastDifference:
    cluster, namespace, kind, name = key
    old, new = (each.manifest if each else None for each in (before, after))
    return PastDifference(
        cluster=cluster,
        namespace=namespace,
        kind=kind,
        name=name,
        words=diff_in_words.changes(old, new),
        fields=sorted(changed_fields(old, new)) if old and new else (),
        before=old,
        after=new,
        written=after or before,
    )
