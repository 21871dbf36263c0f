"""QueueLines of synced objects: the state and the difference in words, and what may be done."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies import services
from portal.pages.views import object_address
from sync.inventory.cluster_states import rank
from sync.models import SyncedObject
from sync.passes.object_sides import dicts_in
from sync.values import READ_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.db.models import QuerySet

_STATES: Final = SyncedObject.State
RESOLVABLE: Final = (_STATES.CONFLICT, _STATES.DRIFTED)
"""States that a person's choice ends."""
STATE_WORDS: Final = {
    _STATES.CONFLICT: "changed on both sides",
    _STATES.HELD: "deletion held",
    _STATES.DRIFTED: "changed in the cluster",
    _STATES.PENDING: "on its way to the cluster",
    _STATES.UNOWNED: "read only",
    _STATES.IN_SYNC: "in sync",
}
"""The states in words, the most urgent first."""
_LOOKS: Final = {
    _STATES.CONFLICT: "conflict",
    _STATES.HELD: "conflict",
    _STATES.DRIFTED: "drifted",
    _STATES.PENDING: "writing",
    _STATES.UNOWNED: "portal-only",
    _STATES.IN_SYNC: "in-sync",
}
_LIMITS: Final = re.compile(r"^\.spec\.limits\[(\d+)\]\.")
_TEXT: Final = 40
"""Characters of a value that a row shows."""


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One object in a row; ``can_join`` is whether it may be settled together with others."""

    object: SyncedObject
    cluster: str
    address: str
    look: str
    words: str
    difference: str
    who: str
    can_settle: bool
    can_join: bool
    can_be_owned: bool


def in_order(objects: QuerySet[SyncedObject], *first: str) -> QuerySet[SyncedObject]:
    """Objects without their manifests, by some columns, then the most urgent first."""
    # Three manifests of each row, which a list does not show, would be most of the work.
    return objects.defer("base", "theirs", "live").order_by(
        *first, rank("state", STATE_WORDS), "cluster__name", "namespace", "kind", "name"
    )


def lines_of(objects: Iterable[SyncedObject]) -> list[QueueLine]:
    """Put each object into a row; its cluster is read with it."""
    return [line_of(each) for each in objects]


def line_of(each: SyncedObject) -> QueueLine:
    """One object in a row."""
    differences = dicts_in(each.differences) if each.state != _STATES.IN_SYNC else []
    managers = {str(one["manager"]) for one in differences if one.get("manager")}
    can_settle = can_be_settled(each)
    return QueueLine(
        object=each,
        cluster=each.cluster.name,
        address=object_address(each.cluster.name, each),
        look=_LOOKS.get(_STATES(each.state), ""),
        words=_state_words(each, differences),
        difference=in_words(differences, is_conflict=each.state == _STATES.CONFLICT),
        who=", ".join(sorted(managers)),
        can_settle=can_settle,
        can_join=can_settle and each.state != _STATES.CONFLICT,
        can_be_owned=each.kind in services.KINDS,
    )


def can_be_settled(each: SyncedObject) -> bool:
    """Whether a person's choice ends the difference."""
    return each.state in RESOLVABLE and each.kind not in READ_KINDS


def _state_words(each: SyncedObject, differences: list[dict[str, Any]]) -> str:
    is_whole = bool(differences) and not differences[0].get("field")
    if each.state == _STATES.DRIFTED and is_whole and differences[0].get("theirs") is None:
        return "deleted in the cluster"
    return STATE_WORDS[_STATES(each.state)]


def in_words(differences: list[dict[str, Any]], *, is_conflict: bool = False) -> str:
    """The first difference in words, and how many more there are."""
    if not differences:
        return ""
    first = differences[0]
    if not first.get("field"):
        return "the cluster has none" if first.get("theirs") is None else "the portal has none"
    ours, theirs, base = (_value(first, side) for side in ("ours", "theirs", "base"))
    name = short_field(str(first["field"]))
    if is_conflict and base not in (ours, theirs):
        words = f"{name} {base} → {ours} here, {base} → {theirs} there"
    else:
        words = f"{name} {ours} → {theirs}"
    more = len(differences) - 1
    return f"{words} and {more} more" if more else words


def short_field(field: str) -> str:
    """A field's path as people name it: "max memory" for ``.spec.limits[0].max.memory``."""
    if _LIMITS.match(field):
        return _LIMITS.sub("", field).replace(".", " ", 1)
    return field.removeprefix(".spec").removeprefix(".hard").lstrip(".") or field


def _value(difference: Mapping[str, Any], side: str) -> str:
    value = difference.get(side)
    text = "none" if value is None else str(value)
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"
