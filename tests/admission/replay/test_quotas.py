"""The journal of a quota against other hard values: usage, when it is full, who waits."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest

from admission.replay import quotas
from admission.replay.quotas import FullStretch, JournalChange, QuotaReplay, WaitEnd, replay_quota
from engine.resource_list import parse

BEGIN = dt.datetime(2026, 9, 21, tzinfo=dt.UTC)


def at(minutes: float) -> dt.datetime:
    return BEGIN + dt.timedelta(minutes=minutes)


def change(
    minutes: float, name: str, before: int, after: int, *, may_wait: bool = True
) -> JournalChange:
    held = [parse({"pods": str(amount)}) if amount else {} for amount in (before, after)]
    return JournalChange(at(minutes), name, name, held[0], held[1], may_wait, f"of-{name}")


def replayed(*changes: JournalChange, hard: Any = None, **given: Any) -> QuotaReplay:
    return replay_quota(
        changes,
        hard=parse(hard or {"pods": "2"}),
        start=parse(given.get("start", {})),
        known=given.get("known", ["pods"]),
        period=(BEGIN, at(100)),
    )


def test_with_room_nothing_waits() -> None:
    found = replayed(change(1, "a", 0, 1), change(2, "b", 0, 1), change(3, "a", 1, 0))
    assert (found.waited, found.full_times) == (0, 0)
    assert str(found.peak["pods"]) == "2"


def test_a_request_waits_until_a_release_makes_room() -> None:
    changes = [change(i, name, 0, 1) for i, name in ((1, "a"), (2, "b"), (3, "c"))]
    found = replayed(*changes, change(10, "a", 1, 0))
    (wait,) = found.longest
    assert (wait.name, wait.decision, wait.ended) == ("c", "of-c", WaitEnd.ADMITTED)
    assert wait.seconds == 7 * 60
    assert found.stretches == [FullStretch(at(3), at(10), 1)]
    assert str(found.peak["pods"]) == "2"


def test_what_is_released_before_there_is_room_never_runs() -> None:
    found = replayed(change(1, "a", 0, 2), change(2, "b", 0, 1), change(5, "b", 1, 0))
    assert found.waits[WaitEnd.GONE] == 1
    assert found.stretches == [FullStretch(at(2), at(5), 1)]


def test_what_nothing_makes_room_for_waits_until_the_end() -> None:
    found = replayed(change(1, "a", 0, 2), change(2, "b", 0, 1))
    assert found.waits[WaitEnd.WAITING] == 1
    assert found.stretches == [FullStretch(at(2), None, 1)]
    assert found.waited_seconds == 98 * 60


def test_the_oldest_that_fits_goes_first() -> None:
    found = replayed(
        change(1, "a", 0, 1),
        change(1, "b", 0, 1),
        change(2, "big", 0, 2),
        change(3, "small", 0, 1),
        change(4, "later", 0, 1),
        change(5, "a", 1, 0),
        change(9, "b", 1, 0),
    )
    ends = {wait.name: wait.end for wait in found.longest if wait.ended is WaitEnd.ADMITTED}
    assert ends == {"small": at(5), "later": at(9)}


def test_a_resize_that_waits_keeps_what_the_object_holds() -> None:
    found = replayed(
        change(1, "a", 0, 1), change(2, "b", 0, 1), change(3, "a", 1, 2), change(4, "b", 1, 0)
    )
    (wait,) = found.longest
    assert (wait.name, wait.end) == ("a", at(4))
    released = replayed(
        change(1, "a", 0, 1), change(2, "b", 0, 1), change(3, "a", 1, 2), change(4, "a", 2, 0),
        change(5, "c", 0, 1),
    )  # fmt: skip
    assert released.waits == {WaitEnd.ADMITTED: 0, WaitEnd.GONE: 1, WaitEnd.WAITING: 0}


def test_what_was_seen_in_the_cluster_is_counted_and_never_waits() -> None:
    found = replayed(change(1, "a", 0, 5, may_wait=False))
    assert found.waited == 0
    assert str(found.peak["pods"]) == "5"


def test_over_the_limit_what_does_not_grow_passes() -> None:
    found = replayed(change(1, "a", 3, 2), start={"pods": "4"})
    assert found.waited == 0


def test_a_confirmed_amount_is_what_the_waiting_request_asks_for() -> None:
    found = replayed(
        change(1, "a", 0, 2),
        change(2, "b", 0, 2),
        change(3, "b", 2, 1, may_wait=False),
        change(4, "a", 2, 1, may_wait=False),
    )
    (wait,) = found.longest
    assert (wait.name, wait.end, wait.ended) == ("b", at(4), WaitEnd.ADMITTED)


def test_names_that_the_journal_has_not_are_unknown() -> None:
    found = replayed(change(1, "a", 0, 1), hard={"pods": "1", "services": "0"})
    assert found.unknown == ("services",)
    assert found.waited == 0


def test_other_names_of_the_journal_do_not_count() -> None:
    more = change(1, "a", 0, 9)._replace(after=parse({"services": "9"}))
    assert replayed(more, known=["pods", "services"]).waited == 0


def test_the_start_counts() -> None:
    assert replayed(change(1, "a", 0, 1), start={"pods": "2"}).waited == 1


def test_points_and_waits_are_bounded() -> None:
    changes = [change(i / 100, f"p{i}", 0, 1) for i in range(5000)]
    found = replayed(*changes)
    assert len(found.points) <= quotas.MOST_POINTS
    assert len(found.longest) == quotas.MOST_WAITS
    assert found.waited == 4998
    assert found.longest[0].name == "p2"


def test_the_report_is_json() -> None:
    rendered = replayed(change(1, "a", 0, 2), change(2, "b", 0, 1)).render()
    assert rendered["hard"] == {"pods": "2"}
    assert rendered["full"] == [{"begin": "2026-09-21T00:02:00Z", "end": None, "waited": 1}]
    assert rendered["longest_waits"][0]["decision"] == "of-b"
    assert rendered["points"][-1]["used"] == {"pods": "2"}


def amount(amounts: Any) -> int:
    return int(str(amounts.get("pods", "0")))


class Naive:
    """The same by plain numbers: every waiting request is asked again after every entry."""

    def __init__(self, hard: int) -> None:
        self.hard, self.used = hard, 0
        self.queue: list[list[Any]] = []
        self.ended: list[tuple[str, dt.datetime, WaitEnd]] = []

    def apply(self, each: JournalChange) -> None:
        mine = next((one for one in self.queue if one[0].name == each.name), None)
        growth = amount(each.after) - amount(each.before)
        if mine and each.after:
            mine[2] = amount(each.after)
        elif mine:
            self.queue.remove(mine)
            self.used -= mine[1]
            self.ended.append((each.name, each.at, WaitEnd.GONE))
        elif each.may_wait and growth > 0 and self.used + growth > self.hard:
            self.queue.append([each, amount(each.before), amount(each.after)])
        else:
            self.used += growth
        while self.admit(each.at):
            pass

    def admit(self, moment: dt.datetime) -> bool:
        for one in self.queue:
            growth = one[2] - one[1]
            if growth <= 0 or self.used + growth <= self.hard:
                self.queue.remove(one)
                self.used += growth
                self.ended.append((one[0].name, moment, WaitEnd.ADMITTED))
                return True
        return False


@pytest.mark.parametrize("number", range(60))
def test_a_random_journal_is_replayed_as_by_plain_numbers(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MOST_WAITS", 10_000)
    dice = random.Random(number)  # noqa: S311 - repeatable on purpose
    held: dict[str, int] = {}
    changes = []
    for step in range(200):
        name = f"p{step}" if dice.random() < 0.5 or not held else dice.choice(sorted(held))
        before = held.get(name, 0)
        after = dice.choice((1, 2, 3)) if not before or dice.random() < 0.2 else 0
        held[name] = after
        if not after:
            del held[name]
        changes.append(change(step / 4, name, before, after, may_wait=dice.random() < 0.9))
    hard = dice.choice((3, 8, 20))
    found = replayed(*changes, hard={"pods": str(hard)})
    plain = Naive(hard)
    for each in changes:
        plain.apply(each)
    waiting = [(one[0].name, at(100), WaitEnd.WAITING) for one in plain.queue]
    ended = [(wait.name, wait.end, wait.ended) for wait in found.longest]
    assert sorted(ended) == sorted(plain.ended + waiting)
