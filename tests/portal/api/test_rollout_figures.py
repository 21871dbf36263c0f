"""The figures of a roll-out are read by who sees the change; guards by who sees all its places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from policies.change_sets.rollout.plan import read_plan
from policies.db.clock import read_clock
from policies.models import Rollout
from policies.services import changes
from policies.services.changes import rollout
from tests import api_document, factories
from tests.admission.rollout.test_work import begun, refused
from tests.changes import AUTHOR, change_of, limit, put
from tests.sync.api.calls import client as caller
from tests.sync.api.calls import send

if TYPE_CHECKING:
    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    api_document.watch(monkeypatch)


def test_stages_and_guards_have_their_figures() -> None:
    row = begun({"kind": "denials_per_owner", "above": 0})
    refused("web-5d9f8c7b6d-x2x4z", read_clock())
    found = send("get", f"changes/{row.change_id}/rollout/figures/", code=200)
    [stage] = found["stages"]
    assert (stage["number"], stage["namespaces"], stage["denied"], stage["deny_rate"]) == (
        1,
        1,
        1,
        100.0,
    )
    assert stage["new_denials"] == [{"owner": "team/web", "number": 1}]
    [guard] = found["guards"]
    assert (guard["kind"], guard["figure"], guard["owner"], guard["holds"]) == (
        "denials_per_owner",
        1.0,
        "team/web",
        False,
    )


def test_a_change_without_a_plan_has_none() -> None:
    factories.cluster()
    send("get", f"changes/{change_of().pk}/rollout/figures/", code=404)


@pytest.fixture
def tripped() -> ChangeSet:
    """A roll-out over two namespaces that an owner of the first has stopped."""
    factories.apply(limit("1"))
    factories.namespace("other", in_cluster="prod")
    change = change_of(limit("2"))
    put(change, limit("2", namespace="other"))
    plan = {"waves": [{"namespaces": ["team"]}, {"namespaces": ["other"]}]}
    rollout.put_plan(change, plan=read_plan(plan), user=AUTHOR)
    rollout.start(changes.submit(change, user=AUTHOR), user="bob")
    return rollout.trip(change, user="bob", words="1 (team/web), stops above 0", reverts=False)


def test_who_sees_a_part_reads_no_name_of_another_place(tripped: ChangeSet) -> None:
    one = caller("viewer", namespace="other")
    answer = send("get", f"changes/{tripped.pk}/rollout/", code=200, who=one)
    assert answer["plan"] is None
    assert answer["tripped"] == rollout.TRIPPED_ELSEWHERE
    figures = send("get", f"changes/{tripped.pk}/rollout/figures/", code=200, who=one)
    assert figures == {"stages": [], "guards": None}
    steps = send("get", f"changes/{tripped.pk}/", code=200, who=one)["steps"]
    assert "team" not in str(steps)
    whole = send("get", f"changes/{tripped.pk}/rollout/", code=200)
    assert whole["tripped"] == Rollout.objects.get().tripped
    assert whole["plan"]["waves"][0]["namespaces"] == ["team"]


def test_who_sees_nothing_of_it_does_not_find_it(tripped: ChangeSet) -> None:
    other = caller("viewer", namespace="elsewhere")
    send("get", f"changes/{tripped.pk}/rollout/figures/", code=404, who=other)
