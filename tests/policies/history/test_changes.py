"""Changes as of an instant: the stage of a roll-out in force, and the change just after it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from policies import history
from policies.models import ChangeItem, ChangeSet, ChangeStep, Rollout, RolloutStage
from tests import people

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.django_db
BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def at(minutes: int) -> dt.datetime:
    return BEGIN + dt.timedelta(minutes=minutes)


def rollout(*stages: tuple[int, str, int, int | None], waves: Iterable[tuple[str, int]]) -> int:
    """A roll-out with stages of wave, mode, first and last minute; namespaces and their waves."""
    change = ChangeSet.objects.create(title="tighten", author="ada", state="rolling_out")
    for namespace, wave in waves:
        ChangeItem.objects.create(
            change=change, cluster="prod", kind="LimitRange", namespace=namespace, name="lr",
            content={}, wave=wave,
        )  # fmt: skip
    made = Rollout.objects.create(change=change, plan={}, at=1, total=9)
    for number, (wave, mode, began, ended) in enumerate(stages, start=1):
        RolloutStage.objects.create(
            rollout=made, number=number, wave=wave, mode=mode,
            began=at(began), ended=None if ended is None else at(ended),
        )  # fmt: skip
    return change.pk


def stages(namespace: str, minutes: int) -> list[tuple[int, int, str]]:
    found = history.stages_at("prod", namespace, at(minutes))
    return [(each.change.pk, each.wave, each.mode) for each in found]


def test_the_stage_of_a_namespace_is_the_last_one_of_its_wave() -> None:
    change = rollout(
        (1, "audit", 10, 20), (1, "enforce", 20, 30), (2, "audit", 30, 40),
        waves=[("team", 1), ("shop", 2)],
    )  # fmt: skip
    assert [stages("team", minute) for minute in (9, 10, 19, 20, 35)] == [
        [],
        [(change, 1, "audit")],
        [(change, 1, "audit")],
        [(change, 1, "enforce")],
        [(change, 1, "enforce")],
    ]
    assert stages("shop", 35) == [(change, 2, "audit")]
    assert stages("team", 40) == []  # it is over
    assert stages("other", 15) == []


def test_a_namespace_that_no_stage_has_reached_waits() -> None:
    change = rollout((1, "audit", 10, None), waves=[("team", 1), ("shop", 2)])
    [waiting] = history.stages_at("prod", "shop", at(15))
    assert (waiting.change.pk, waiting.waves, waiting.at_wave) == (change, [2], 1)
    assert waiting.began is None


def published(namespace: str, monkeypatch: pytest.MonkeyPatch, minutes: int) -> int:
    change = ChangeSet.objects.create(title="tighten", author="ada", state="done")
    ChangeItem.objects.create(
        change=change, cluster="prod", kind="LimitRange", namespace=namespace, name="lr", content={}
    )
    with monkeypatch.context() as patched:
        patched.setattr(timezone, "now", lambda: at(minutes))
        ChangeStep.objects.create(
            change=change, step="publish", state_before="approved", state_after="done",
            user="ada", content_hash="0",
        )  # fmt: skip
    return change.pk


def test_an_instant_just_before_a_change_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    user = people.person("ada")
    first = published("team", monkeypatch, 10)
    published("shop", monkeypatch, 12)

    def after(minutes: int, **place: str) -> int | None:
        found = history.change_after(user, at(minutes), **place)
        return found.pk if found else None

    assert after(9) == after(9, cluster="prod", namespace="team") == first
    assert [after(4), after(10, namespace="team"), after(9, cluster="test")] == [None] * 3


def test_a_change_of_other_places_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    published("team", monkeypatch, 10)
    assert history.change_after(people.person("eve", namespace="shop"), at(9)) is None
