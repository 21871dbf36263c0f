"""ReplayedChange: what the replays of a change found, those of its clusters together, by owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from admission.models import Replay
from admission.replay.judge import ChangeKind
from admission.replay.of_change import replays_of
from policies import roles
from portal.pages.replays.report import WORDS, day_bars

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from admission.replay.of_change import ChangeReplay
    from policies.models import ChangeItem, ChangeSet

OWNERS_SHOWN: Final = 5
"""So many owners are on the overview; the tab has all that the reports name."""
TILES: Final = (
    (ChangeKind.TO_DENIED, "allowed → denied", "denied"),
    (ChangeKind.TO_ALLOWED, "denied → allowed", ""),
    (ChangeKind.PATCH, "patch differs", "mutated"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReplay:
    """The changed decisions of one owner in one cluster; ``bars`` is a path of days."""

    cluster: str
    namespace: str
    kind: str
    name: str
    number: int
    text: str
    oldest: str
    newest: str
    bars: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTile:
    """One kind of change, and how many decisions it concerns."""

    kind: str
    label: str
    look: str
    number: int
    is_chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedChange:
    """The last replays of a change; ``missing`` clusters have none that is current."""

    replays: Sequence[ChangeReplay]
    missing: Sequence[str]
    tiles: Sequence[ReplayTile]
    owners: Sequence[OwnerReplay]
    decisions: int
    left_out: int

    @property
    def is_done(self) -> bool:
        """Whether anything was found."""
        return any(each.replay.state == Replay.State.DONE for each in self.replays)

    @property
    def is_current(self) -> bool:
        """Whether all that is proposed was replayed."""
        return self.is_done and not self.missing

    @property
    def under_way(self) -> Replay | None:
        """The first replay that goes on."""
        return next((each.replay for each in self.replays if not each.replay.is_over), None)

    @property
    def failed(self) -> Sequence[Replay]:
        """The replays that an error stopped."""
        found = (each.replay for each in self.replays)
        return [each for each in found if each.state == Replay.State.FAILED]

    @property
    def denied(self) -> int:
        """Requests that would be refused."""
        return self.tiles[0].number if self.tiles else 0

    @property
    def flips(self) -> int:
        """Verdicts that would be others, either way."""
        flipping = (ChangeKind.TO_DENIED, ChangeKind.TO_ALLOWED)
        return sum(each.number for each in self.tiles if each.kind in flipping)

    @property
    def unjudged(self) -> int:
        """Decisions that could not be replayed."""
        return self.tiles[-1].number if self.tiles else 0

    @property
    def days(self) -> int:
        """Over how many days they go."""
        return max(
            ((each.replay.until - each.replay.since).days for each in self.replays), default=0
        )

    @property
    def finished(self) -> datetime | None:
        """When the last of them ended."""
        ends = [each.replay.finished for each in self.replays if each.replay.finished]
        return max(ends, default=None)

    @property
    def seconds(self) -> int:
        """How long they took together."""
        spans = (each.replay for each in self.replays if each.replay.finished)
        took = (each.finished - each.started for each in spans if each.finished and each.started)
        return round(sum(each.total_seconds() for each in took))


def replayed(
    change: ChangeSet, *, items: Iterable[ChangeItem], user: Any, kind: str = "", most: int = 0
) -> ReplayedChange:
    """Put the last replays together that the user may see; two queries."""
    items = list(items)
    found = [
        each
        for each in replays_of(change.pk, items=items)
        if all(
            roles.sees(user, each.replay.cluster, place)
            for place in each.replay.namespaces or ("",)
        )
    ]
    current = {each.replay.cluster for each in found if each.is_current}
    chosen = ChangeKind(kind) if kind in tuple(ChangeKind) else ChangeKind.TO_DENIED
    done = [each.replay for each in found if each.replay.state == Replay.State.DONE]
    owners = sorted(_owners(done, chosen), key=lambda each: -each.number)
    shown = owners[: most or OWNERS_SHOWN]
    return ReplayedChange(
        replays=found,
        missing=sorted({item.cluster for item in items} - current),
        tiles=_tiles(done, chosen),
        owners=shown,
        decisions=sum(_verdicts(each)["decisions"] for each in done),
        left_out=_number(done, chosen) - sum(each.number for each in shown),
    )


def _verdicts(replay: Replay) -> dict[str, Any]:
    verdicts: dict[str, Any] = (replay.report or {})["verdicts"]
    return verdicts


def _number(done: Iterable[Replay], kind: ChangeKind) -> int:
    return sum(_verdicts(each)["changes"][kind]["number"] for each in done)


def _tiles(done: Sequence[Replay], chosen: ChangeKind) -> list[ReplayTile]:
    tiles = [
        ReplayTile(
            kind=kind.value,
            label=label,
            look=look,
            number=_number(done, kind),
            is_chosen=kind is chosen,
        )
        for kind, label, look in TILES
    ]
    verdicts = [_verdicts(each) for each in done]
    unjudged = sum(each["decisions"] - each["replayed"] for each in verdicts)
    return [*tiles, ReplayTile(kind="", label="not replayable", look="", number=unjudged)]


def _owners(done: Iterable[Replay], kind: ChangeKind) -> Iterable[OwnerReplay]:
    for replay in done:
        first = replay.since.date()
        days = (replay.until.date() - first).days + 1
        for group in _verdicts(replay)["changes"][kind]["by"]["owner"]["groups"]:
            namespace, is_placed, words = group["key"].partition("/")
            of_kind, _, name = (words if is_placed else namespace).partition(" ")
            yield OwnerReplay(
                cluster=replay.cluster,
                namespace=namespace if is_placed else "",
                kind=of_kind if name else "",
                name=name or of_kind,
                number=group["number"],
                text=group["text"],
                oldest=group["oldest"],
                newest=group["newest"],
                bars=day_bars(group["days"], first=first, days=days),
            )


def look_of(kind: str) -> str:
    """The look of bars of a kind of change."""
    return WORDS[ChangeKind(kind)][1] if kind in tuple(ChangeKind) else "denied"
