"""Several people publish and edit the same change at once: each step is taken once, whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from policies.change_sets.states import StepRefusedError
from policies.models import ChangeSet, ChangeStep, PolicyRevision
from policies.services import changes
from tests import factories
from tests.changes import AUTHOR, change_of, cpu, limit, put

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer"),
]


def at_once(*steps: Callable[[], object]) -> list[str]:
    """How each step ended: ``done``, or the name of its refusal."""

    def end_of(step: Callable[[], object]) -> str:
        try:
            step()
        except (StepRefusedError, changes.ItemsRefusedError, changes.OutdatedChangeError) as error:
            return type(error).__name__
        finally:
            connection.close()
        return "done"

    with ThreadPoolExecutor(len(steps)) as threads:
        return sorted(threads.map(end_of, steps))


def test_a_change_that_many_publish_is_published_once() -> None:
    factories.namespace()
    change = changes.submit(change_of(limit(), limit(name="other")), user=AUTHOR)
    ends = at_once(*[lambda: changes.publish(change, user="bob")] * 6)
    assert ends == ["StepRefusedError"] * 5 + ["done"]
    assert ChangeStep.objects.filter(step="publish").count() == 1
    assert PolicyRevision.objects.filter(kind="LimitRange").count() == 2


def test_of_two_changes_of_one_policy_one_finds_its_base_moved() -> None:
    factories.apply(limit("1"))
    both = [changes.submit(change_of(limit(amount)), user=AUTHOR) for amount in ("2", "3")]
    ends = at_once(*[lambda change=change: changes.publish(change, user="bob") for change in both])
    assert ends == ["ItemsRefusedError", "done"]
    assert sorted(ChangeSet.objects.values_list("state", flat=True)) == ["approved", "done"]
    assert PolicyRevision.objects.filter(kind="LimitRange").count() == 2


def test_what_is_published_is_what_was_seen_or_nothing() -> None:
    factories.apply(limit("1"))
    change = changes.submit(change_of(limit("2")), user=AUTHOR)
    seen = change.content_hash
    ends = at_once(
        lambda: changes.publish(change, user="bob", seen=seen), lambda: put(change, limit("9"))
    )
    change.refresh_from_db()
    assert (ends, change.state, cpu()) in [
        (["StepRefusedError", "done"], "done", "2"),
        (["StepRefusedError", "done"], "draft", "1"),
    ]
