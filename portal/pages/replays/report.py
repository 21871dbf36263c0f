"""A replay's report to be read: ReportPart of one kind of change, GroupRow, counts of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

from admission.replay.judge import ChangeKind
from admission.replay.report import Dimension

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from admission.models import Replay

WORDS: Final = {
    ChangeKind.TO_DENIED: ("newly denied", "denied"),
    ChangeKind.TO_ALLOWED: ("newly allowed", "allowed"),
    ChangeKind.PATCH: ("patched differently", "mutated"),
    ChangeKind.NEW_WARNING: ("newly warned", "warned"),
    ChangeKind.VANISHED_WARNING: ("no longer warned", "passed"),
}
"""What a kind of change is called, and the look of its mark."""
CAUSES: Final = {
    "cut": "The object was too large to be kept whole",
    "redacted": "A long annotation that a policy reads was not kept",
    "kind-not-kept": "The object was sent under another kind than its resource's",
    "unreadable": "The recorded object cannot be read",
    "not-judged": "It was refused before any policy was asked",
    "policies-unreadable": "A stored policy of the namespace cannot be read",
}
BARS_WIDTH, BARS_HEIGHT = 96, 16
_MOST_BARS: Final = 48
_BAR_SHARE: Final = 0.75
"""The share of a bar in the width of its time; the rest is the gap behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChoice:
    """One kind of change and how many decisions it concerns."""

    kind: str
    label: str
    look: str
    number: int
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """The changed decisions of one owner, namespace, user, reason or policy; ``bars`` is a path."""

    key: str
    number: int
    text: str
    oldest: str
    newest: str
    bars: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableReport:
    """What the page shows of a report: the chosen kind of change in the chosen dimension."""

    decisions: int
    replayed: int
    judged: int
    kinds: Sequence[KindChoice]
    dimension: str
    dimensions: Sequence[str]
    rows: Sequence[GroupRow]
    groups_left_out: int
    decisions_left_out: int
    record: Mapping[str, Any]
    not_replayed: Sequence[tuple[str, Mapping[str, Any]]]

    @property
    def chosen(self) -> KindChoice:
        """The kind of change that is shown."""
        return next(each for each in self.kinds if each.is_chosen)

    @property
    def has_changes(self) -> bool:
        """Whether the proposal would change any decision."""
        return any(each.number for each in self.kinds)

    @property
    def without(self) -> int:
        """How many decisions could not be judged."""
        return self.decisions - self.replayed


def readable(replay: Replay, *, kind: str, by: str) -> ReadableReport:
    """The report of a replay that is done; without a known kind the first that has decisions."""
    verdicts: dict[str, Any] = (replay.report or {})["verdicts"]
    numbers = {each: verdicts["changes"][each]["number"] for each in ChangeKind}
    usual = next((each for each in ChangeKind if numbers[each]), ChangeKind.TO_DENIED)
    chosen = ChangeKind(kind) if kind in tuple(ChangeKind) else usual
    dimension = Dimension(by) if by in tuple(Dimension) else Dimension.OWNER
    grouping = verdicts["changes"][chosen]["by"][dimension]
    first, days = replay.since.date(), (replay.until.date() - replay.since.date()).days + 1
    causes = sorted(verdicts["not_replayed"].items(), key=lambda each: -each[1]["number"])
    return ReadableReport(
        decisions=verdicts["decisions"],
        replayed=verdicts["replayed"],
        judged=verdicts["judged"],
        kinds=[
            KindChoice(
                kind=each.value,
                label=WORDS[each][0],
                look=WORDS[each][1],
                number=numbers[each],
                is_chosen=each is chosen,
            )
            for each in ChangeKind
        ],
        dimension=dimension.value,
        dimensions=[each.value for each in Dimension],
        rows=[
            GroupRow(
                key=each["key"],
                number=each["number"],
                text=each["text"],
                oldest=each["oldest"],
                newest=each["newest"],
                bars=day_bars(each["days"], first=first, days=days),
            )
            for each in grouping["groups"]
        ],
        groups_left_out=grouping["groups_left_out"],
        decisions_left_out=grouping["decisions_left_out"],
        record=verdicts["record"],
        not_replayed=[(CAUSES.get(cause, cause), found) for cause, found in causes],
    )


def day_bars(numbers: Mapping[str, int], *, first: date, days: int) -> str:
    """A path of one bar for each day, or for several together where there are many days."""
    together = -(-days // _MOST_BARS)
    sums = [0] * -(-days // together)
    for position in range(days):
        day = first + timedelta(days=position)
        sums[position // together] += numbers.get(day.isoformat(), 0)
    most, step = max(sums), BARS_WIDTH / len(sums)
    if not most:
        return ""
    width = step * _BAR_SHARE
    return "".join(
        f"M{place * step:.1f} {BARS_HEIGHT}v-{height:.1f}h{width:.1f}v{height:.1f}z"
        for place, number in enumerate(sums)
        if number
        for height in [max(1.0, BARS_HEIGHT * number / most)]
    )
