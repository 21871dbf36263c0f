"""A report counts, groups and bounds what a replay finds."""

from __future__ import annotations

import datetime as dt
from typing import Any

import orjson

from admission.models.decision_id import encode
from admission.replay import report as report_module
from admission.replay.judge import AnswerChange, ChangeKind, Compared
from admission.replay.recorded import PastDecision, Unreplayed
from admission.replay.report import ReplayReport, owner_of

BEGIN = dt.datetime(2026, 9, 21, 23, 59, 59, tzinfo=dt.UTC)
REFUSED = AnswerChange(ChangeKind.TO_DENIED, ("MaxConstraint",), ("LimitRange/ns/a",), "too much")


def recorded(number: int = 0, **columns: Any) -> PastDecision:
    created = BEGIN + dt.timedelta(seconds=number)
    object_ = {
        "metadata": {
            "name": f"web-5d9f8c7b6d-x2x4{number}",
            "labels": {"pod-template-hash": "5d9f8c7b6d"},
            "ownerReferences": [
                {"kind": "ReplicaSet", "name": "web-5d9f8c7b6d", "controller": True}
            ],
        }
    }
    request = {"kind": {"kind": "Pod"}, "object": object_}
    return PastDecision(
        **{
            "id": encode(int(created.timestamp() * 1000), 0),
            "created": created,
            "namespace": "ns",
            "phase": "validate",
            "user": "alice",
            "name": "web",
            "verdict": "allowed",
            "reasons": "",
            "policy_revision": 1,
            "request": orjson.dumps(request).decode(),
            **columns,
        }
    )


def compared(*changes: AnswerChange, allowed: bool = True, reasons: Any = ()) -> Compared:
    return Compared(allowed, frozenset(reasons), changes)


def test_a_flip_is_in_one_group_of_each_dimension() -> None:
    report = ReplayReport()
    for number in (0, 1, 2):
        report.add(recorded(number), compared(REFUSED))
    found = report.render()["changes"]["to_denied"]
    keys = {name: [each["key"] for each in by["groups"]] for name, by in found["by"].items()}
    assert keys == {
        "owner": ["ns/Deployment web"],
        "namespace": ["ns"],
        "user": ["alice"],
        "reason": ["MaxConstraint"],
        "policy": ["LimitRange/ns/a"],
    }
    (group,) = found["by"]["owner"]["groups"]
    assert group["number"] == 3
    assert group["days"] == {"2026-09-21": 1, "2026-09-22": 2}
    assert (group["oldest"], group["newest"]) == (recorded(0).id, recorded(2).id)
    assert group["text"] == "too much"
    assert report.has_flips


def test_a_changed_patch_is_no_flip() -> None:
    report = ReplayReport()
    report.add(recorded(), compared(AnswerChange(ChangeKind.PATCH, (), (), "")))
    assert not report.has_flips


def test_the_base_is_compared_with_the_record() -> None:
    report = ReplayReport()
    report.add(recorded(), compared())
    report.add(recorded(1, verdict="mutated"), compared())
    report.add(recorded(2, verdict="denied", reasons=" A "), compared(allowed=False, reasons="A"))
    report.add(recorded(3, verdict="denied", reasons=" ExceededQuota "), compared())
    report.add(recorded(4, verdict="denied", reasons=" A "), compared())
    report.add(recorded(5, reasons=" A "), compared())
    assert report.repeated == 3
    assert report.of_the_moment.number == 1
    assert (report.differing.number, report.differing.oldest) == (2, recorded(4).id)


def test_what_was_not_replayed_is_counted_by_cause() -> None:
    report = ReplayReport()
    report.add(recorded(), Unreplayed.CUT)
    report.add(recorded(1), Unreplayed.CUT)
    assert (report.decisions, report.replayed) == (2, 0)
    rendered = report.render()["not_replayed"]
    assert rendered == {"cut": {"number": 2, "oldest": recorded().id, "newest": recorded(1).id}}


def test_further_groups_are_counted_and_not_shown(monkeypatch: Any) -> None:
    monkeypatch.setattr(report_module, "MOST_COUNTED", 60)
    report = ReplayReport()
    for number in range(100):
        report.add(recorded(number, user=f"u{number:03}"), compared(REFUSED))
    by_user = report.render()["changes"]["to_denied"]["by"]["user"]
    assert len(by_user["groups"]) == report_module.MOST_SHOWN
    assert by_user["groups_left_out"] == 10
    assert by_user["decisions_left_out"] == 50


def test_a_report_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(report_module, "LARGEST", 20_000)
    report = ReplayReport()
    for number in range(100):
        report.add(recorded(number, user=f"u{number:03}" * 20), compared(REFUSED))
    assert len(orjson.dumps(report.render())) <= 20_000


def test_an_object_without_owner_is_named_by_itself() -> None:
    request = {"kind": {"kind": "Service"}, "object": {"metadata": {"name": "shop"}}}
    service = recorded(name="shop", request=orjson.dumps(request).decode())
    assert owner_of(service) == "ns/Service shop"
