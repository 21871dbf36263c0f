"""The curve of a replayed quota: shares of the limit over time, and the times it was full."""

from __future__ import annotations

import datetime as dt

from admission.models import Replay
from portal.pages.replays.quotas import HEIGHT, TOP, WIDTH, quota_curves

BEGIN = dt.datetime(2026, 9, 1, tzinfo=dt.UTC)
REPORT = {
    "hard": {"pods": "4", "requests.cpu": "2"},
    "hard_before": {"pods": "6"},
    "unknown_names": [],
    "changes": 3,
    "peak": {"pods": "4", "requests.cpu": "500m"},
    "points": [
        {"at": "2026-09-01T00:00:00Z", "used": {"pods": "2", "requests.cpu": "0"}},
        {"at": "2026-09-06T00:00:00Z", "used": {"pods": "4", "requests.cpu": "500m"}},
    ],
    "full_times": 1,
    "full": [{"begin": "2026-09-06T00:00:00Z", "end": None, "waited": 2}],
    "waits": {"admitted": 1, "gone": 0, "waiting": 1},
    "waited_seconds": 600,
    "longest_waits": [],
}


def replay(*quotas: object) -> Replay:
    until = BEGIN + dt.timedelta(days=10)
    return Replay(since=BEGIN, until=until, report={"quotas": list(quotas)})


def test_a_curve_follows_the_resource_nearest_to_its_limit() -> None:
    found = {"namespace": "team", "quota": "compute", "state": "replayed", "report": REPORT}
    [curve] = quota_curves(replay(found))
    assert [(each.resource, each.percent) for each in curve.peaks] == [
        ("pods", 100),
        ("requests.cpu", 25),
    ]
    assert [each.current for each in curve.peaks] == ["6", ""]
    middle, half = WIDTH / 2, TOP + (HEIGHT - TOP) / 2
    places = [(0.0, half), (middle, half), (middle, TOP), (WIDTH, TOP), (WIDTH, TOP)]
    assert curve.line == " ".join(f"{float(x)},{float(y)}" for x, y in places)
    assert curve.full == [(middle, middle)]
    assert (curve.waited, curve.minutes, curve.limit_y) == (2, 10, TOP)


def test_quotas_in_which_somebody_waits_come_first() -> None:
    calm = {"namespace": "a", "quota": "calm", "state": "new", "report": None}
    full = {"namespace": "b", "quota": "full", "state": "replayed", "report": REPORT}
    assert [each.name for each in quota_curves(replay(calm, full))] == ["full", "calm"]
