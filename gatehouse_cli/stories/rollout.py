"""The story of a roll-out: where it stands, its stages, its guards, why it stopped by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gatehouse_cli.objects.times import shown_moment
from gatehouse_cli.stories.parts import aligned, part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatehouse_cli.client.answers import RolloutJson, WavePlanJson

_HEADINGS: Final = ("STAGE", "WAVE", "WHERE", "MODE", "DWELL", "WRITTEN", "BEGAN")
_NONE: Final = "-"
_ALL: Final = 100


def rollout_lines(rollout: RolloutJson) -> Iterator[str]:
    """The lines of the story."""
    yield standing_of(rollout)
    if rollout["tripped"]:
        yield f"it stopped by itself: {rollout['tripped']}"
    stages = list(_stages(rollout))
    yield from part("Stages", aligned([_HEADINGS, *stages]) if stages else ())
    yield from part("Guards", _guards(rollout))


def standing_of(rollout: RolloutJson) -> str:
    """Where a roll-out stands, in a line."""
    if not rollout["at"]:
        return f"the roll-out has {rollout['total']} stages, and is not started"
    words = f"stage {rollout['at']} of {rollout['total']}, started by {rollout['starter']}"
    ends = rollout["ends"]
    return f"{words}, ends {shown_moment(ends).partition(',')[0]}" if ends else words


def _stages(rollout: RolloutJson) -> Iterator[tuple[str, ...]]:
    begun = {each["number"]: each for each in rollout["stages"]}
    plan, number = rollout["plan"], 0
    for wave_number, wave in enumerate(plan["waves"] if plan else (), start=1):
        for stage in wave.get("stages", ()):
            number += 1
            found = begun.get(number)
            yield (
                f"{'>' if number == rollout['at'] else ' '} {number}",
                str(wave_number),
                _where(wave),
                stage.get("mode", _NONE),
                f"{stage.get('dwell', 0)} s",
                str(found["written"]) if found else _NONE,
                shown_moment(found["began"]) if found else _NONE,
            )


def _where(wave: WavePlanJson) -> str:
    labels = [f"{name}={value}" for name, value in wave.get("labels", {}).items()]
    percent = wave.get("percent", _ALL)
    share = [f"{percent} %"] if percent < _ALL else []
    places = [*wave.get("clusters", ()), *wave.get("namespaces", ()), *labels, *share]
    return ", ".join(places) or "all places"


def _guards(rollout: RolloutJson) -> Iterator[str]:
    plan = rollout["plan"]
    if plan is None:
        return
    act = plan.get("on_trip", "stop")
    for each in plan.get("guards", ()):
        owners = f" of {', '.join(each.get('owners', ()))}" if each.get("owners") else ""
        yield f"{each['kind']}{owners} above {each.get('above', 0):g}: {act}"
