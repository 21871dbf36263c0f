"""``wave_places``: the namespaces of each wave of a plan, and what keeps it from starting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.change_sets.rollout.plan import RolloutPlan
    from policies.services.changes.rollout import PlacedItem

PLACES_SHOWN: Final = 40
PROBLEMS_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePlaces:
    """The namespaces of a wave, as far as the reader sees them; ``wave`` 0 is what none covers."""

    wave: int
    objects: int
    names: Sequence[str]
    problems: Sequence[str]

    @property
    def shown(self) -> Sequence[str]:
        """The first namespaces."""
        return self.names[:PLACES_SHOWN]

    @property
    def more(self) -> int:
        """How many are not shown."""
        return len(self.names) - len(self.shown)


def wave_places(plan: RolloutPlan, placed: Sequence[PlacedItem]) -> list[WavePlaces]:
    """A line for each wave, and a last one where some object is in none."""
    lines = [_line(wave, placed) for wave in range(1, len(plan.waves) + 1)]
    left_out = _line(0, placed)
    return [*lines, left_out] if left_out.objects else lines


def _line(wave: int, placed: Sequence[PlacedItem]) -> WavePlaces:
    of_wave = [each for each in placed if each.wave == wave]
    names = {f"{each.item.cluster} / {each.item.namespace}" for each in of_wave}
    problems = [str(each.problem) for each in of_wave if each.problem]
    return WavePlaces(
        wave=wave,
        objects=len(of_wave),
        names=sorted(names),
        problems=problems[:PROBLEMS_SHOWN],
    )
