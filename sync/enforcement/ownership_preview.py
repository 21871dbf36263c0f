"""``preview_ownership``: what the portal would do with the objects of a place once it owns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sync.passes.compare import judge_one
from sync.passes.read import Ownership, read_ours, read_ownership, read_rows
from sync.values import WRITTEN_KINDS

if TYPE_CHECKING:
    from policies.models import Cluster
    from sync.reconcile import DiffVerdict
    from sync.values import ObjectKey


ACTION_WORDS: Final = {
    "create": "would be created in the cluster",
    "update": "would be changed in the cluster",
    "delete": "would be deleted in the cluster",
    "import": "would be taken over from the cluster",
    "forget": "would be deleted in the portal",
    "conflict": "differs on both sides: a person decides",
}
"""What each action of a verdict means to people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedObject:
    """One object: whether it is owned by now, and the verdict if it were."""

    key: ObjectKey
    is_owned: bool
    verdict: DiffVerdict

    def to_json(self) -> dict[str, Any]:
        """The object for machines."""
        return {
            "kind": self.key.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "isOwned": self.is_owned,
            "action": self.verdict.action,
            "state": self.verdict.state,
            "differences": [
                {"field": each.field, "ours": each.a, "theirs": each.b}
                for each in self.verdict.differences
            ],
        }


def preview_ownership(
    cluster: Cluster, *, namespace: str = "", kind: str = "", name: str = ""
) -> list[PreviewedObject]:
    """Judge all objects of a place as if it were owned, by both sides as last seen.

    Nothing is sent to the cluster: a run in the mode preview, after ownership, asks it as well.
    """
    ours, rows, owned = read_ours(cluster), read_rows(cluster), read_ownership(cluster)
    place = Ownership(frozenset([(namespace, kind, name)]))
    known = {key for key, row in rows.items() if row.gone is None}
    keys = sorted(key for key in ours.keys() | known if key.kind in WRITTEN_KINDS)
    found = []
    for key in filter(place.covers, keys):
        row = rows.get(key)
        compared = judge_one(
            key,
            ours=ours.get(key),
            live=row.live if row else None,
            row=row,
            base=row.base if row else None,
            owned=True,
        )
        found.append(PreviewedObject(key=key, is_owned=owned.covers(key), verdict=compared.verdict))
    return found
