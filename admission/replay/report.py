"""ReplayReport: counts of a replay, its changes grouped five ways, what was not replayed; JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import orjson

from admission.record import owners
from admission.replay.judge import OF_THE_MOMENT, ChangeKind
from admission.replay.recorded import Unreplayed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admission.replay.judge import AnswerChange, Compared
    from admission.replay.recorded import PastDecision

MOST_COUNTED: Final = 2_000
"""Groups of one kind and dimension that are told apart; further decisions are ``others``."""
MOST_SHOWN: Final = 50
LARGEST: Final = 512 * 1024
"""Bytes of a report as JSON; fewer groups are shown where it would be larger."""
_LONGEST_TEXT: Final = 400


class Dimension(StrEnum):
    """What the changes are grouped by."""

    OWNER = "owner"
    NAMESPACE = "namespace"
    USER = "user"
    REASON = "reason"
    POLICY = "policy"


@dataclass(slots=True, kw_only=True)
class ChangeGroup:
    """The changed decisions of one owner, namespace, user, reason or policy."""

    oldest: str
    newest: str = ""
    text: str = ""
    number: int = 0
    days: dict[str, int] = field(default_factory=dict)

    def add(self, decision: str, day: str) -> None:
        """Count one decision; they come oldest first."""
        self.number += 1
        self.newest = decision
        self.days[day] = self.days.get(day, 0) + 1


@dataclass(slots=True)
class Grouping:
    """The groups of one kind of change in one dimension."""

    groups: dict[str, ChangeGroup] = field(default_factory=dict)
    others: int = 0

    def add(self, key: str, recorded: PastDecision, change: AnswerChange) -> None:
        """Count one decision in its group."""
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) == MOST_COUNTED:
                self.others += 1
                return
            group = self.groups[key] = ChangeGroup(
                oldest=recorded.id, text=change.text[:_LONGEST_TEXT]
            )
        group.add(recorded.id, f"{recorded.created:%Y-%m-%d}")

    def render(self, shown: int) -> dict[str, Any]:
        """The largest groups as JSON, and how much is left out."""
        in_order = sorted(self.groups.items(), key=lambda item: (-item[1].number, item[0]))
        left_out = in_order[shown:]
        return {
            "groups": [
                {
                    "key": key,
                    "number": group.number,
                    "days": group.days,
                    "oldest": group.oldest,
                    "newest": group.newest,
                    "text": group.text,
                }
                for key, group in in_order[:shown]
            ],
            "groups_left_out": len(left_out),
            "decisions_left_out": self.others + sum(group.number for _, group in left_out),
        }


@dataclass(slots=True)
class Examples:
    """A number of decisions, and the oldest and newest of them."""

    number: int = 0
    oldest: str = ""
    newest: str = ""

    def add(self, decision: str) -> None:
        """Count one decision; they come oldest first."""
        self.number += 1
        self.oldest = self.oldest or decision
        self.newest = decision

    def render(self) -> dict[str, Any]:
        """The same as JSON."""
        return {"number": self.number, "oldest": self.oldest, "newest": self.newest}


@dataclass(slots=True, kw_only=True)
class ReplayReport:
    """What a replay has found so far.

    ``repeated`` decisions have under the base the verdict and the reasons of the record;
    ``of_the_moment`` were refused for used amounts alone, which a replay does not judge, and
    ``differing`` were decided by other policies than today's.
    """

    decisions: int = 0
    replayed: int = 0
    judged: int = 0
    repeated: int = 0
    of_the_moment: Examples = field(default_factory=Examples)
    differing: Examples = field(default_factory=Examples)
    not_replayed: dict[Unreplayed, Examples] = field(default_factory=dict)
    changes: dict[ChangeKind, Examples] = field(
        default_factory=lambda: {kind: Examples() for kind in ChangeKind}
    )
    groupings: dict[tuple[ChangeKind, Dimension], Grouping] = field(
        default_factory=lambda: {
            (kind, dimension): Grouping() for kind in ChangeKind for dimension in Dimension
        }
    )

    def add(self, recorded: PastDecision, compared: Compared | Unreplayed) -> None:
        """Count one decision; the oldest comes first."""
        self.decisions += 1
        if isinstance(compared, Unreplayed):
            self.not_replayed.setdefault(compared, Examples()).add(recorded.id)
            return
        self.replayed += 1
        self._compare_with_record(recorded, compared)
        if compared.changes:
            owner = owner_of(recorded)
            for change in compared.changes:
                self.changes[change.kind].add(recorded.id)
                for dimension, key in _keys(recorded, change, owner):
                    self.groupings[change.kind, dimension].add(key, recorded, change)

    def _compare_with_record(self, recorded: PastDecision, compared: Compared) -> None:
        reasons = frozenset(recorded.reasons.split())
        is_of_the_moment = not recorded.allowed and bool(reasons & OF_THE_MOMENT)
        same_reasons = reasons - OF_THE_MOMENT == compared.reasons - OF_THE_MOMENT
        if same_reasons and recorded.allowed == compared.allowed:
            self.repeated += 1
        elif same_reasons and is_of_the_moment:
            self.of_the_moment.add(recorded.id)
        else:
            self.differing.add(recorded.id)

    @property
    def has_flips(self) -> bool:
        """Whether any verdict differs."""
        flips = (ChangeKind.TO_DENIED, ChangeKind.TO_ALLOWED)
        return any(self.changes[kind].number for kind in flips)

    def render(self) -> dict[str, Any]:
        """The report as JSON of at most ``LARGEST`` bytes."""
        shown = MOST_SHOWN
        while True:
            rendered = self._render(shown)
            if shown <= 1 or len(orjson.dumps(rendered)) <= LARGEST:
                return rendered
            shown //= 2

    def _render(self, shown: int) -> dict[str, Any]:
        return {
            "decisions": self.decisions,
            "replayed": self.replayed,
            "judged": self.judged,
            "record": {
                "repeated": self.repeated,
                "of_the_moment": self.of_the_moment.render(),
                "differing": self.differing.render(),
            },
            "not_replayed": {
                cause.value: each.render() for cause, each in self.not_replayed.items()
            },
            "changes": {
                kind.value: {
                    **self.changes[kind].render(),
                    "by": {
                        dimension.value: self.groupings[kind, dimension].render(shown)
                        for dimension in Dimension
                    },
                }
                for kind in ChangeKind
            },
        }


def _keys(
    recorded: PastDecision, change: AnswerChange, owner: str
) -> Iterator[tuple[Dimension, str]]:
    yield Dimension.OWNER, owner
    yield Dimension.NAMESPACE, recorded.namespace
    yield Dimension.USER, recorded.user
    for reason in change.reasons:
        yield Dimension.REASON, reason
    for policy in change.policies:
        yield Dimension.POLICY, policy


def owner_of(recorded: PastDecision) -> str:
    """The object's owner as ``namespace/Kind name``; its own name where nothing owns it."""
    stored = orjson.loads(recorded.request)
    obj = stored.get("object") or stored.get("oldObject")
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    owner = owners.recorded(metadata if isinstance(metadata, dict) else {})
    kind = owner.kind
    name = owner.name or owner.uid
    if not name:
        stored_kind = stored.get("kind")
        kind = str(stored_kind.get("kind") or "") if isinstance(stored_kind, dict) else ""
        name = owners.named(recorded.name)
    words = f"{kind} {name}".strip()
    return f"{recorded.namespace}/{words}" if recorded.namespace else words
