"""The verdict about one object: which side changed since the baseline, and what to do.

Nothing here overwrites an edit: whatever both sides changed, each in its own way, is a conflict,
and so is a deletion against an edit. Without a base nothing was agreed on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from sync.reconcile.diff import differences, walk
from sync.reconcile.normal_form import normal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sync.reconcile.diff import Difference

    Manifest = Mapping[str, Any]

State = Literal["in-sync", "pending", "drifted", "conflict", "unowned"]
Action = Literal["none", "create", "update", "delete", "take-in", "forget", "conflict"]
_FREE_DELETIONS: Final = 10
_LARGEST_SHARE: Final = 5


@dataclass(frozen=True, slots=True)
class DiffVerdict:
    """How one object stands, what to do about it, and in which fields ours and theirs differ.

    ``create``, ``update`` and ``delete`` are done to the cluster; ``take-in`` (their content) and
    ``forget`` (they deleted it) to the portal.
    """

    state: State
    action: Action
    differences: tuple[Difference, ...]


def judge(
    base: Manifest | None, ours: Manifest | None, theirs: Manifest | None, *, owned: bool
) -> DiffVerdict:
    """Judge one object; ``base`` is what both sides last had, None is "not there".

    ``owned``: the portal may write it. What it may not is followed as far as ours has no edit.
    """
    was, our, their = (None if one is None else normal(one) for one in (base, ours, theirs))
    return judge_normal(was, our, their, owned=owned)


def judge_normal(
    was: Manifest | None, our: Manifest | None, their: Manifest | None, *, owned: bool
) -> DiffVerdict:
    """Judge one object by its normal forms."""
    if is_same(our, their):
        return DiffVerdict("in-sync" if owned else "unowned", "none", ())
    state, action = (_owned if owned else _followed)(was, our, their)
    return DiffVerdict(state, action, differences(our, their))


def brake(deletes: int, known: int) -> bool:
    """Whether a pass deletes so much that a person has to look: more than 10 and than a fifth."""
    return deletes > _FREE_DELETIONS and deletes * _LARGEST_SHARE > known


def is_same(a: Manifest | None, b: Manifest | None) -> bool:
    """Whether two normal forms are equal."""
    return next(walk(a, b), None) is None


def _owned(
    was: Manifest | None, our: Manifest | None, their: Manifest | None
) -> tuple[State, Action]:
    """Both sides differ, and both may be written."""
    if is_same(was, their):
        return "pending", _writing(our, their)
    if is_same(was, our):
        return "drifted", "forget" if their is None else "take-in"
    return "conflict", "conflict"


def _followed(
    was: Manifest | None, our: Manifest | None, their: Manifest | None
) -> tuple[State, Action]:
    """Both sides differ, and only ours may be written."""
    if is_same(was, their):
        return "unowned", "none"
    if is_same(was, our):
        return "unowned", "forget" if their is None else "take-in"
    return "conflict", "conflict"


def _writing(our: Manifest | None, their: Manifest | None) -> Action:
    if our is None:
        return "delete"
    return "create" if their is None else "update"
