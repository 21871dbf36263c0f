"""Laws of a replay: it answers as a second portal would, repeats the record, and judges once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from admission.record.redaction import restore
from admission.replay.alike import cut_down
from admission.replay.judge import (
    OF_THE_MOMENT,
    Compared,
    NamelessAnswer,
    ReplayJudge,
    changes_of,
    reduced,
)
from admission.replay.policies import drafted, without_amounts
from admission.replay.recorded import Unreplayed
from admission.replay.run import replay
from engine.chain import admit
from engine.request_json import build_request
from tests.recorded_worlds import NAMESPACE, Asked, World, policy_set, world

if TYPE_CHECKING:
    from engine.policy import PolicySet

pytestmark = pytest.mark.no_cover  # thousands of decisions: tracing each line takes minutes
WORLDS = int(os.environ.get("REPLAY_WORLDS", "300"))
PIECE = 50
PIECES = range(0, WORLDS, PIECE)


def worlds(first: int) -> list[World]:
    return [world(number) for number in range(first, min(first + PIECE, WORLDS))]


def of_policies(outcome: NamelessAnswer) -> NamelessAnswer:
    """An answer without what used amounts led to, which a replay leaves out."""
    findings = tuple(each for each in outcome.findings if each.reason not in OF_THE_MOMENT)
    return outcome._replace(
        allowed=not findings,
        findings=findings,
        observed=tuple(each for each in outcome.observed if each.reason not in OF_THE_MOMENT),
        more=tuple(each for each in outcome.more if each not in OF_THE_MOMENT),
        warnings=tuple(each for each in outcome.warnings if "exceeded quota:" not in each),
    )


def answer(asked: Asked, policies: PolicySet) -> NamelessAnswer:
    """What a portal answers to the request as it was asked, by these policies alone."""
    decision = admit(asked.request, policies, phase=asked.phase, now=asked.now)
    return of_policies(reduced(decision))


@pytest.mark.parametrize("first", PIECES)
def test_replay_answers_as_a_second_portal_with_the_draft(first: int) -> None:
    judged = changed = 0
    for each in worlds(first):
        base = policy_set(each.manifests, each.limited, each.authority)
        second = policy_set(each.after, each.limited_after, each.authority)
        judge = ReplayJudge(each.base, drafted(each.base, each.proposal))
        for asked in each.asked:
            compared = judge.compare(asked.recorded)
            if isinstance(compared, Unreplayed):
                assert compared in (
                    Unreplayed.REDACTED,
                    Unreplayed.KIND_NOT_KEPT,
                    Unreplayed.UNREADABLE,
                )
                continue
            before, after = answer(asked, base), answer(asked, second)
            expected = Compared(before.allowed, before.reasons, changes_of(before, after))
            assert compared == expected, (asked.recorded.id, asked.phase)
            judged += 1
            changed += bool(expected.changes)
    assert judged > 3 * PIECE
    assert changed > judged // 20


@pytest.mark.parametrize("first", PIECES)
def test_base_on_itself_gives_no_flips_and_repeats_the_record(first: int) -> None:
    for each in worlds(first):
        *_, report = replay([[one.recorded for one in each.asked]], each.base, each.base)
        assert not any(found.number for found in report.changes.values())
        assert report.differing.number == 0, report.differing.oldest
        assert report.repeated + report.of_the_moment.number == report.replayed
        not_replayed = sum(found.number for found in report.not_replayed.values())
        assert report.replayed + not_replayed == report.decisions == len(each.asked)


@pytest.mark.parametrize("first", PIECES)
def test_requests_with_one_key_get_the_same_outcome(first: int) -> None:
    alike = 0
    for each in worlds(first):
        sets = [without_amounts(one.of(NAMESPACE)) for one in (each.base,)]
        sets.append(without_amounts(drafted(each.base, each.proposal).of(NAMESPACE)))
        known: dict[bytes, Any] = {}
        for asked in each.asked:
            for names in range(3):
                stored = renamed(orjson.loads(asked.recorded.request), names)
                whole = build_request(restore(stored))
                outcomes = [
                    reduced(admit(whole, one, phase=asked.phase, now=asked.now)) for one in sets
                ]
                key = cut_down(stored, phase=asked.phase, moment=asked.now)
                alike += key in known
                assert known.setdefault(key, outcomes) == outcomes
    assert alike > PIECE


def renamed(stored: Any, number: int) -> Any:
    """The same request of another object: other names, uids, times and owners."""
    if number:
        stored.update(uid=f"u{number}", name=f"other-{number}", userInfo={"username": "u"})
        for name in ("object", "oldObject"):
            metadata = (stored.get(name) or {}).get("metadata")
            if isinstance(metadata, dict):
                metadata.update(name=f"n{number}", uid=f"m{number}", generateName=f"g{number}-")
                metadata["creationTimestamp"] = f"2026-01-0{number}T00:00:00Z"
                metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": f"r{number}"}]
    return stored


def test_a_time_of_deletion_is_judged_by_the_clock() -> None:
    stored = {"object": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}}
    keys = {cut_down(dict(stored), phase="validate", moment=moment) for moment in (1, 2)}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (("object", "metadata", "labels"), {"a": "c"}),
        (("object", "metadata", "annotations"), {"a": "c"}),
        (("object", "spec"), {"priorityClassName": "high"}),
        (("oldObject", "metadata", "resourceVersion"), "1"),
        (("dryRun",), True),
        (("namespace",), "other"),
        (("operation",), "UPDATE"),
        (("subResource",), "resize"),
    ],
)
def test_whatever_rules_read_makes_another_key(part: tuple[str, ...], value: Any) -> None:
    def stored(*, changed: bool) -> Any:
        made: Any = {"object": {"metadata": {}}, "oldObject": {"metadata": {"resourceVersion": ""}}}
        holder = made
        for name in part[:-1]:
            holder = holder.setdefault(name, {})
        if changed:
            holder[part[-1]] = value
        return made

    keys = [cut_down(stored(changed=one), phase="validate", moment=1) for one in (False, True)]
    assert keys[0] != keys[1]
