"""QuotaCurve: what a quota would have used under proposed hard amounts, and who would have waited.

Shares of the limit are drawn, in an SVG of ``WIDTH`` by ``HEIGHT``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from engine.quantity import Quantity
from portal.pages.shell.quota_trends import stairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from admission.models import Replay

WIDTH, HEIGHT = 600, 84
TOP: Final = 14
STATES: Final = {
    "new": "It does not exist yet, so no journal tells of it.",
    "scopes-changed": "Its scopes change: the journal counted other pods.",
    "not-enforced": "It is not enforced here, so no journal tells of it.",
}
_WHOLE: Final = 1000
"""Shares are whole thousandths of the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakLine:
    """The most that was used of one resource, both limits, and the share of the proposed one."""

    resource: str
    peak: str
    hard: str
    current: str
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaCurve:
    """One quota over time; ``problem`` says why there is no curve. Points are SVG's."""

    namespace: str
    name: str
    problem: str = ""
    resource: str = ""
    line: str = ""
    area: str = ""
    limit_y: float = TOP
    peaks: Sequence[PeakLine] = ()
    full: Sequence[tuple[float, float]] = ()
    full_times: int = 0
    waited: int = 0
    admitted: int = 0
    gone: int = 0
    waiting: int = 0
    waited_seconds: int = 0
    longest: Sequence[Mapping[str, Any]] = ()
    unknown: Sequence[str] = ()

    @property
    def minutes(self) -> int:
        """How long all waits together would have been."""
        return round(self.waited_seconds / 60)


def quota_curves(replay: Replay) -> list[QuotaCurve]:
    """The quotas that the proposal changes; those in which somebody waits come first."""
    found = [_curve(each, replay) for each in (replay.report or {}).get("quotas", ())]
    return sorted(found, key=lambda each: (-each.waited, each.namespace, each.name))


def _curve(found: Mapping[str, Any], replay: Replay) -> QuotaCurve:
    place = {"namespace": found["namespace"], "name": found["quota"]}
    report = found["report"]
    if report is None:
        return QuotaCurve(**place, problem=STATES.get(found["state"], found["state"]))
    hard = {name: Quantity.parse(text) for name, text in report["hard"].items()}
    peaks = [
        PeakLine(
            resource=name,
            peak=report["peak"].get(name, "0"),
            hard=report["hard"][name],
            current=report.get("hard_before", {}).get(name, ""),
            percent=_share(Quantity.parse(report["peak"].get(name, "0")), limit) * 100 // _WHOLE,
        )
        for name, limit in hard.items()
    ]
    peaks.sort(key=lambda each: -each.percent)
    waits = report["waits"]
    drawn = _drawn(report, hard, peaks[0].resource, replay) if peaks else {}
    return QuotaCurve(
        **place,
        **drawn,
        peaks=peaks,
        full_times=report["full_times"],
        waited=sum(waits.values()),
        admitted=waits.get("admitted", 0),
        gone=waits.get("gone", 0),
        waiting=waits.get("waiting", 0),
        waited_seconds=report["waited_seconds"],
        longest=[
            {**each, "begin": _moment(each["begin"]), "minutes": round(each["seconds"] / 60)}
            for each in report["longest_waits"]
        ],
        unknown=report["unknown_names"],
    )


def _drawn(
    report: Mapping[str, Any], hard: Mapping[str, Quantity], resource: str, replay: Replay
) -> dict[str, Any]:
    """The curve of the resource that came nearest to its limit."""
    span = (replay.until - replay.since).total_seconds() or 1

    def x_of(text: str) -> float:
        share = (_moment(text) - replay.since).total_seconds() / span
        return round(min(max(share, 0.0), 1.0) * WIDTH, 1)

    shares = [
        (x_of(each["at"]), _share(Quantity.parse(each["used"][resource]), hard[resource]))
        for each in report["points"]
        if resource in each["used"]
    ]
    most = max([_WHOLE, *(share for _, share in shares)])

    def y_of(share: int) -> float:
        return round(TOP + (1 - share / most) * (HEIGHT - TOP), 1)

    points = [(x, y_of(share)) for x, share in shares]
    line = stairs([*points, *((float(WIDTH), y) for _, y in points[-1:])])
    return {
        "resource": resource,
        "line": line,
        "area": f"{points[0][0]},{HEIGHT} {line} {WIDTH},{HEIGHT}" if points else "",
        "limit_y": y_of(_WHOLE),
        "full": [
            (x_of(each["begin"]), max(2.0, x_of(each["end"]) - x_of(each["begin"])))
            if each["end"]
            else (x_of(each["begin"]), max(2.0, WIDTH - x_of(each["begin"])))
            for each in report["full"]
        ],
    }


def _share(used: Quantity, hard: Quantity) -> int:
    """Used of hard in thousandths; a limit of nothing is full as soon as it exists."""
    if not hard.nano:
        return _WHOLE
    return used.nano * _WHOLE // hard.nano


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
