"""DiffVerdict: state and action from was, our, their.

No verdict overwrites an edit: different changes on both sides are a conflict, and so is a deletion
against an edit. Without a baseline the sides never agreed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from policies.managed_fields import normal
from sync.reconcile.diff import differences, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sync.reconcile.diff import Difference

    Manifest = Mapping[str, Any]

State = Literal["in-sync", "pending", "drifted", "conflict", "unowned"]
Action = Literal["none", "create", "update", "delete", "import", "forget", "conflict"]


@dataclass(frozen=True, slots=True)
class DiffVerdict:
    """The state of one object, the action on it, and the fields in which ours and theirs differ.

    ``create``, ``update`` and ``delete`` change the cluster; ``import`` (their content) and
    ``forget`` (their deletion) change the portal.
    """

    state: State
    action: Action
    differences: tuple[Difference, ...]


def judge(
    base: Manifest | None, ours: Manifest | None, theirs: Manifest | None, *, owned: bool
) -> DiffVerdict:
    """Judge one object; ``base`` is the last agreed manifest, None stands for an absent object.

    ``owned``: the portal may write it. Other objects follow the cluster unless ours was edited.
    """
    was, our, their = (None if one is None else normal(one) for one in (base, ours, theirs))
    return judge_normal(was, our, their, owned=owned)


def judge_normal(
    was: Manifest | None, our: Manifest | None, their: Manifest | None, *, owned: bool
) -> DiffVerdict:
    """Judge one object by its normal forms."""
    if is_same(our, their):
        return DiffVerdict("in-sync" if owned else "unowned", "none", ())
    state, action = (_judge_owned if owned else _judge_followed)(was, our, their)
    return DiffVerdict(state, action, differences(our, their))


def is_same(a: Manifest | None, b: Manifest | None) -> bool:
    """Whether two normal forms are equal."""
    return next(walk(a, b), None) is None


def _judge_owned(
    was: Manifest | None, our: Manifest | None, their: Manifest | None
) -> tuple[State, Action]:
    """Judge two sides that differ and may both be written."""
    if is_same(was, their):
        if our is None:
            return "pending", "delete"
        return "pending", "create" if their is None else "update"
    if is_same(was, our):
        return "drifted", "forget" if their is None else "import"
    return "conflict", "conflict"


def _judge_followed(
    was: Manifest | None, our: Manifest | None, their: Manifest | None
) -> tuple[State, Action]:
    """Judge two sides that differ, of which only ours may be written."""
    if is_same(was, their):
        return "unowned", "none"
    if is_same(was, our):
        return "unowned", "forget" if their is None else "import"
    return "conflict", "conflict"
