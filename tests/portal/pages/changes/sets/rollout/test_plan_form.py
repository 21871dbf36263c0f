"""The plan of a roll-out is typed into fields; what is wrong stands beside them, and stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies.models import Rollout
from policies.services import changes
from tests import factories
from tests.changes import AUTHOR, change_of, limit, put
from tests.portal.pages.changes.sets.rollout.test_page import client_of, press

if TYPE_CHECKING:
    from django.test import Client

    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db
RULE = {"rules": [{"policyAction": {"reject": True}}]}
TYPED = {
    "wave-0-clusters": "prod",
    "wave-0-namespaces": "team, shop-*",
    "wave-0-labels": "tier=web",
    "wave-0-percent": "50",
    "wave-0-audit": "1d",
    "wave-0-warn": "",
    "wave-0-enforce": "1h30m",
    "wave-1-enforce": "0",
    "guard-0-kind": "denials_of",
    "guard-0-above": "1.5",
    "guard-0-owners": "team/web db",
    "on_trip": "revert",
}


@pytest.fixture
def change() -> ChangeSet:
    """A change of a new MetadataPolicy, which may be observed."""
    factories.namespace()
    return change_of(factories.manifest("MetadataPolicy", RULE, name="mp"))


@pytest.fixture
def editor() -> Client:
    return client_of("editor")


def shown(client: Client, change: ChangeSet) -> Any:
    return client.get(f"/changes/{change.pk}/rollout/")


def values(answer: Any, name: str) -> list[str]:
    return [str(form[name].value() or "") for form in answer.context["form"].waves]


def wrong(answer: Any) -> dict[str, list[str]]:
    """The codes of the errors, by field."""
    form = answer.context["form"]
    return {
        f"{row.prefix}-{name}": [each.code for each in errors.as_data()]
        for row in (*form.waves, *form.guards)
        for name, errors in row.errors.items()
    }


def test_what_is_typed_becomes_the_plan(editor: Client, change: ChangeSet) -> None:
    assert press(editor, change, "plan", **TYPED).redirect_chain
    stages = [{"mode": "audit", "dwell": 86_400}, {"mode": "enforce", "dwell": 5400}]
    everywhere = {"clusters": [], "namespaces": [], "labels": {}, "percent": 100}
    assert Rollout.objects.get().plan == {
        "waves": [
            {
                "clusters": ["prod"],
                "namespaces": ["team", "shop-*"],
                "labels": {"tier": "web"},
                "percent": 50,
                "stages": stages,
            },
            {**everywhere, "stages": [{"mode": "enforce", "dwell": 0}]},
        ],
        "guards": [{"kind": "denials_of", "above": 1.5, "owners": ["team/web", "db"]}],
        "on_trip": "revert",
    }


def test_a_stored_plan_comes_back_into_its_fields(editor: Client, change: ChangeSet) -> None:
    press(editor, change, "plan", **TYPED)
    plan = Rollout.objects.get().plan
    form = shown(editor, change).context["form"]
    typed = {
        f"{row.prefix}-{field.name}": str(field.value() or "")
        for row in (*form.waves, *form.guards)
        for field in row
    }
    press(editor, change, "plan", **typed, on_trip=form.on_trip)
    assert Rollout.objects.get().plan == plan


@pytest.mark.parametrize(
    ("typed", "field", "code"),
    [
        ({"wave-0-enforce": "2"}, "wave-0-enforce", "invalid"),
        ({"wave-0-enforce": "99d"}, "wave-0-enforce", "invalid"),
        ({"wave-0-audit": "soon"}, "wave-0-audit", "invalid"),
        ({"wave-0-percent": "0"}, "wave-0-percent", "invalid"),
        ({"wave-0-percent": "ten"}, "wave-0-percent", "invalid"),
        ({"wave-0-labels": "web"}, "wave-0-labels", "invalid"),
        ({"wave-0-clusters": "prod_"}, "wave-0-clusters", "invalid"),
        ({"wave-1-namespaces": "a%b"}, "wave-1-namespaces", "invalid"),
        ({"guard-0-above": "-1"}, "guard-0-above", "invalid"),
        ({"guard-0-above": "nan"}, "guard-0-above", "invalid"),
        ({"guard-0-kind": "moon"}, "guard-0-kind", "invalid_choice"),
        ({"guard-0-owners": ""}, "guard-0-owners", "required"),
        ({"guard-0-kind": "failures"}, "guard-0-owners", "not_allowed"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_lost(
    editor: Client, change: ChangeSet, typed: dict[str, str], field: str, code: str
) -> None:
    sent = {**TYPED, **typed}
    answer = press(editor, change, "plan", **sent)
    assert answer.status_code == 422
    assert wrong(answer) == {field: [code]}
    page = answer.content.decode()
    for name, text in sent.items():
        # A choice that is none of those offered cannot be shown.
        assert name == "on_trip" or text in {"", "moon"} or f'value="{text}"' in page
    assert not Rollout.objects.exists()


def test_a_plan_as_a_whole_may_be_wrong(editor: Client, change: ChangeSet) -> None:
    answer = press(editor, change, "plan", on_trip="stop")
    assert answer.context["form"].other == ["waves: must have at least one wave"]
    answer = press(editor, change, "plan", **{**TYPED, "on_trip": "explode"})
    assert answer.context["form"].other == ["on_trip: must be one of: stop, revert"]


def test_rows_are_added_moved_and_taken_out_and_nothing_is_stored(
    editor: Client, change: ChangeSet
) -> None:
    sent = {"wave-0-clusters": "a", "wave-1-clusters": "b", "wave-1-enforce": "2 x"}
    assert values(press(editor, change, "addwave", **sent), "clusters") == ["a", "b", ""]
    moved = press(editor, change, "upwave:1", **sent)
    assert values(moved, "clusters") == ["b", "a"]
    assert values(moved, "enforce") == ["2 x", ""]
    assert not moved.context["form"].has_errors
    assert values(press(editor, change, "downwave:0", **sent), "clusters") == ["b", "a"]
    assert values(press(editor, change, "downwave:1", **sent), "clusters") == ["a", "b"]
    assert values(press(editor, change, "dropwave:0", **sent), "clusters") == ["b"]
    assert values(press(editor, change, "dropwave:²", **sent), "clusters") == ["a", "b"]
    guards = press(editor, change, "addguard", **{"guard-0-kind": "latency"}).context["form"].guards
    assert [each["kind"].value() for each in guards] == ["latency", "failures"]
    assert not press(editor, change, "dropguard:0", **TYPED).context["form"].guards
    assert not Rollout.objects.exists()


def test_a_plan_has_twenty_waves_at_most(editor: Client, change: ChangeSet) -> None:
    sent = {f"wave-{number}-percent": "100" for number in range(30)}
    assert len(values(press(editor, change, "addwave", **sent), "percent")) == 20


def test_namespaces_are_shown_by_wave_as_the_plan_is_typed(
    editor: Client, change: ChangeSet
) -> None:
    factories.namespace("shop", in_cluster="prod")
    rule = factories.manifest("MetadataPolicy", RULE, name="mp", namespace="shop")
    put(change, rule)
    sent = {"wave-0-namespaces": "shop", "wave-1-namespaces": "tea"}
    places = press(editor, change, "preview", **sent).context["places"]
    assert [(each.wave, list(each.names)) for each in places] == [
        (1, ["prod / shop"]),
        (2, []),
        (0, ["prod / team"]),
    ]
    assert "no wave of the plan covers it" in places[2].problems[0]
    assert press(editor, change, "preview", **{"wave-0-percent": "x"}).context["places"] is None


def test_what_is_in_force_has_no_field_for_audit_and_is_refused_there(editor: Client) -> None:
    factories.apply(limit("1"))
    change = change_of(limit("2"))
    assert 'name="wave-0-audit"' not in shown(editor, change).content.decode()
    answer = press(editor, change, "plan", **{"wave-0-audit": "1h", "on_trip": "stop"})
    assert wrong(answer) == {"wave-0-audit": ["not_observed"]}
    assert 'name="wave-0-audit"' in answer.content.decode()


def test_a_change_without_a_plan_is_offered_one_that_may_be_saved(
    editor: Client, change: ChangeSet
) -> None:
    answer = shown(editor, change)
    assert answer.context["is_suggested"]
    assert values(answer, "audit") == ["1d"]
    form = answer.context["form"]
    typed = {
        f"{row.prefix}-{field.name}": str(field.value() or "")
        for row in (*form.waves, *form.guards)
        for field in row
    }
    press(editor, change, "plan", **typed, on_trip=form.on_trip)
    assert not shown(editor, change).context["is_suggested"]


def test_a_plan_under_way_has_no_form(editor: Client, change: ChangeSet) -> None:
    press(editor, change, "plan", **TYPED)
    changes.submit(change, user=AUTHOR)
    press(editor, change, "plan", **{"wave-0-enforce": "1h", "on_trip": "stop"})
    press(editor, change, "start")
    assert "form" not in shown(editor, change).context
    assert press(editor, change, "plan", **TYPED).status_code == 409
