"""``writes_of``: when a change was written, and to which namespaces; a roll-out writes in waves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.models import ChangeItem, PolicyRevision

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeWrite:
    """One write of a change to a cluster: its moment, and the namespaces of its objects."""

    at: datetime
    cluster: str
    namespaces: frozenset[str]


def writes_of(items: Iterable[ChangeItem]) -> list[ChangeWrite]:
    """The writes that published some objects of a change, the first one first; one query.

    Objects that were as wanted already, or are not published, have none.
    """
    written = {
        (item.cluster, *item.key, item.written) for item in items if item.written is not None
    }
    if not written:
        return []
    revisions = PolicyRevision.objects.filter(
        cluster__in={each[0] for each in written},
        namespace__in={each[2] for each in written},
        name__in={each[3] for each in written},
        number__in={each[4] for each in written},
    ).only("cluster", "kind", "namespace", "name", "number", "cluster_revision", "created")
    by_write: dict[tuple[str, int], list[PolicyRevision]] = {}
    for each in revisions:
        # The sets may match further revisions.
        if (each.cluster, each.kind, each.namespace, each.name, each.number) in written:
            by_write.setdefault((each.cluster, each.cluster_revision), []).append(each)
    found = [
        ChangeWrite(
            at=min(each.created for each in of_write),
            cluster=cluster,
            namespaces=frozenset(each.namespace for each in of_write),
        )
        for (cluster, _number), of_write in by_write.items()
    ]
    return sorted(found, key=lambda write: (write.at, write.cluster))
