"""Which pods that run would not come back under what is written in the editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from engine.request import Operation, Phase
from policies.ledger.release import release
from policies.models import LedgerPass, LimitRange
from tests import factories
from tests.builders import container, pod, request
from tests.charges import admit
from tests.people import person
from tests.running_pods import OWNER, asks, on_record, running

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries, SettingsWrapper


pytestmark = pytest.mark.django_db
RANGE = {"type": "Container", "max": {"cpu": "4"}}
PLACE = "/clusters/prod/namespaces/team"
PAGE = f"{PLACE}/limitranges/lr/"
GRID = {"form": "on", "name": "lr", "row-0-item": "0", "row-0-type": "Container"}
TIGHT = {**GRID, "row-0-resource": "cpu", "row-0-max": "2"}


@pytest.fixture
def editor() -> Client:
    factories.limit_range(RANGE)
    client = Client()
    client.force_login(person("ed", "editor", cluster="prod", namespace="team"))
    return client


def asked_of(client: Client, form: dict[str, str], page: str = PAGE, way: str = "restarts/") -> Any:
    opened: Any = client.get(page)
    state = opened.context["state"]
    sent = {"seen": "1", "shown": state.shown, "yaml": state.draft.text, **form}
    response: Any = client.post(f"{page}{way}", sent)
    assert response.status_code == 200
    return response.context["impact"].places["team"]


def test_pods_of_one_owner_are_told_with_the_reason(editor: Client) -> None:
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"), asks("web-2"), asks("small", "1", owner=False))
    found = asked_of(editor, TIGHT)
    (row,) = found.rows
    assert (row.kind, row.owner, sorted(each.pod.name for each in row.pods)) == (
        "Deployment", "web", ["web-1", "web-2"],
    )  # fmt: skip
    assert [each.policy.name for each in row.refusals] == ["lr"]
    assert (found.passing, found.newly, found.running.counted) == (1, 2, 3)
    assert str(LimitRange.objects.get().rows.get().max) == "4"


@pytest.mark.parametrize("mode", ["audit", "warn", "enforce"])
def test_a_draft_is_judged_as_if_enforced_whatever_its_mode(editor: Client, mode: str) -> None:
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"), asks("small", "1"))
    found = asked_of(editor, {**TIGHT, "enforcement": mode})
    assert (found.refused, found.newly, found.passing) == (1, 1, 1)


def test_scripts_get_the_preview_alone_and_figures_of_all_namespaces(editor: Client) -> None:
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"), asks("web-2"), asks("small", "1", owner=False))
    state = editor.get(PAGE).context["state"]
    sent = {"seen": "1", "shown": state.shown, "yaml": state.draft.text, **TIGHT}
    part: Any = editor.post(f"{PAGE}restarts/", sent, headers={"HX-Request": "true"})
    impact = part.context["impact"]
    assert (impact.refused, impact.pods, impact.owners, impact.namespaces) == (2, 3, 1, 1)
    assert [row.amount for row in impact.rows] == ["3"]
    assert b"<main" not in part.content


def test_value_that_passes_is_offered_for_its_cell_with_what_it_refuses(editor: Client) -> None:
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"), asks("web-2", "4"), asks("small", "1", owner=False))
    state = editor.get(PAGE).context["state"]
    sent = {"seen": "1", "shown": state.shown, "yaml": state.draft.text, **TIGHT}
    values = editor.post(f"{PAGE}restarts/", sent).context["values"]
    found = [(each.cell, each.amount, each.refused, each.owners) for each in values]
    assert found == [("row-0-max", "3", 1, 1), ("row-0-max", "4", 0, 0)]
    used: Any = editor.post(PAGE, {**sent, "do": "use:row-0-max:3"})
    assert used.context["form"]["row"][0]["max"].value == "3"
    audit: Any = editor.post(PAGE, {**sent, "do": "use:enforcement:audit"})
    assert audit.context["fields"]["enforcement"].value == "audit"


def offered(client: Client, form: dict[str, str], page: str = PAGE) -> list[tuple[str, str, int]]:
    """The values that pass: cell, amount, and how many pods they would still refuse."""
    state: Any = client.get(page).context["state"]
    sent = {"seen": "1", "shown": state.shown, "yaml": state.draft.text, **form}
    answer: Any = client.post(f"{page}restarts/", sent)
    return [(each.cell, each.amount, each.refused) for each in answer.context["values"]]


def completed(app: dict[str, Any]) -> None:
    """A running pod that was requested with less than it has: defaults completed it."""
    bare = pod(app, name="web-1", uid="uid-web-1", ownerReferences=[OWNER])
    on_record(request(bare, namespace="team"), Phase.MUTATE)
    running(asks("web-1"))


def test_ratio_that_passes_is_offered(editor: Client) -> None:
    factories.resource_quota({"pods": "9"})
    wide = container(limits={"cpu": "3"}, requests={"cpu": "1"})
    narrow = container(limits={"cpu": "4"}, requests={"cpu": "1600m"})
    running(
        request(pod(wide, name="wide", uid="uid-wide"), namespace="team"),
        request(pod(narrow, name="narrow", uid="uid-narrow"), namespace="team"),
    )
    form = {**GRID, "row-0-resource": "cpu", "row-0-maxLimitRequestRatio": "2"}
    ratio = "row-0-maxLimitRequestRatio"
    assert offered(editor, form) == [(ratio, "2500m", 1), (ratio, "3", 0)]


def test_limit_of_a_quota_that_passes_counts_what_others_use(editor: Client) -> None:
    factories.resource_quota({"requests.cpu": "6"})
    running(asks("a"), asks("b", "2"))
    hard = {"form": "on", "name": "rq", "hard-0-resource": "requests.cpu", "hard-0-amount": "4"}
    found = offered(editor, hard, f"{PLACE}/resourcequotas/rq/")
    # Each pod is asked for in the room that the other leaves: both need the 5 in use.
    assert found == [("hard-0-amount", "5", 0)]


def test_default_that_passes_is_offered_for_pods_without_an_amount(editor: Client) -> None:
    factories.resource_quota({"pods": "9"})
    completed(container(requests={"cpu": "2"}))
    form = {**GRID, "row-0-resource": "cpu", "row-0-default": "1", "row-0-defaultRequest": "1"}
    assert offered(editor, form) == [("row-0-default", "2", 0)]


def test_default_is_lowered_to_the_bound_of_another_range(editor: Client) -> None:
    factories.limit_range(RANGE, name="other")
    factories.resource_quota({"pods": "9"})
    completed(container())
    form = {**GRID, "row-0-resource": "cpu", "row-0-default": "5", "row-0-defaultRequest": "1"}
    assert offered(editor, form) == [("row-0-default", "4", 0)]


def test_value_that_another_amount_of_the_draft_forbids_is_not_offered(editor: Client) -> None:
    factories.resource_quota({"pods": "9"})
    completed(container(requests={"cpu": "3"}))
    form = {**GRID, "row-0-resource": "cpu", "row-0-default": "1", "row-0-max": "2"}
    assert all(cell != "row-0-default" for cell, _, _ in offered(editor, form))


@pytest.mark.parametrize(("percent", "code"), [(20, 422), (50, 302), (0, 422)])
def test_saving_asks_where_many_would_not_come_back(
    editor: Client, settings: SettingsWrapper, percent: int, code: int
) -> None:
    settings.GATEHOUSE_CONFIRM_REFUSED_PERCENT = percent
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"), asks("small", "1"))
    state = editor.get(PAGE).context["state"]
    sent = {"seen": "1", "shown": state.shown, "yaml": state.draft.text, **TIGHT}
    sent |= {"do": "save", "reason": "tighter"}
    answer: Any = editor.post(PAGE, sent)
    assert answer.status_code == code
    if code == 422:
        assert "1 of 2 running pods" in answer.context["dangers"][0]
        script = {"HX-Request": "true"}
        asked: Any = editor.post(PAGE, {**sent, "do": "ask"}, headers=script)
        assert asked.context["dangers"] == answer.context["dangers"]
        assert editor.post(PAGE, {**sent, "confirm": "team"}).status_code == 302


def test_each_pod_is_asked_in_the_room_it_holds(editor: Client) -> None:
    factories.resource_quota({"requests.cpu": "6"})
    running(asks("a"), asks("b"))
    assert asked_of(editor, GRID | {"row-0-resource": "cpu", "row-0-max": "3"}).refused == 0
    page = f"{PLACE}/resourcequotas/rq/"
    hard = {"form": "on", "name": "rq", "hard-0-resource": "requests.cpu", "hard-0-amount": "5"}
    assert asked_of(editor, hard, page).refused == 2


def test_new_quota_counts_who_runs(editor: Client) -> None:
    running(asks("a"), asks("b"))
    page = f"{PLACE}/resourcequotas/new"
    form = {"form": "on", "name": "q", "hard-0-resource": "pods"}
    for amount, refused in (("2", 0), ("1", 2)):
        found = asked_of(editor, {**form, "hard-0-amount": amount}, page, "/restarts")
        assert (found.refused, found.running.recorded) == (refused, 2)


def test_owner_asks_as_it_did_before_anything_was_changed(editor: Client) -> None:
    factories.limit_range({**RANGE, "default": {"cpu": "3"}})
    bare = request(pod(name="web-1", uid="uid-web-1", ownerReferences=[OWNER]), namespace="team")
    on_record(bare, Phase.MUTATE)
    on_record(asks("web-1"))
    assert asked_of(editor, {**TIGHT, "row-0-default": "1"}).refused == 0
    assert asked_of(editor, TIGHT).refused == 0


def test_what_is_gone_is_not_asked_for_and_what_is_unknown_is_counted(editor: Client) -> None:
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"), asks("web-2"))
    release("prod", resource="pods", uid="uid-web-1")
    admit(asks("older"))
    LedgerPass.objects.create(cluster=factories.cluster(), resource="pods", finished=timezone.now())
    found = asked_of(editor, TIGHT)
    assert [each.pod.name for each in found.running.pods] == ["web-2"]
    assert found.running.unknown == ("older",)
    assert found.running.seen


def test_deleted_pod_of_the_record_is_left_out(editor: Client) -> None:
    on_record(asks("web-1"))
    gone = pod(name="web-1", uid="uid-web-1")
    end = {"operation": Operation.DELETE, "old_object": gone, "name": "web-1"}
    on_record(request(None, namespace="team", **end))
    assert asked_of(editor, TIGHT).running.pods == ()


def test_what_would_be_refused_today_is_told_apart(editor: Client) -> None:
    on_record(asks("big"))
    factories.limit_range({**RANGE, "max": {"cpu": "1"}})
    found = asked_of(editor, TIGHT)
    assert (found.refused, found.newly) == (1, 0)


def test_unreadable_draft_is_told(editor: Client) -> None:
    response: Any = editor.post(f"{PAGE}restarts/", {"shown": "", "yaml": "spec: ["})
    assert "impact_error" in response.context
    assert editor.get(f"{PAGE}restarts/")["Location"] == PAGE


def test_who_may_not_write_may_not_ask(editor: Client) -> None:
    for role, namespace, status in (("viewer", "team", 403), ("editor", "other", 404)):
        client = Client()
        client.force_login(person(role, role, cluster="prod", namespace=namespace))
        assert client.post(f"{PAGE}restarts/", {}).status_code == status


def test_number_of_queries_does_not_grow(
    editor: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    factories.resource_quota({"pods": "99"})
    running(*[asks(f"web-{number}") for number in range(8)])
    with django_assert_max_num_queries(40):
        editor.post(f"{PAGE}restarts/", {"shown": "", "yaml": "spec: {}"})


@pytest.mark.parametrize(
    ("cpu", "offered"), [("0", []), ("1m", ["2k"]), ("100m", ["20"]), ("1.5", [])]
)
def test_a_ratio_is_offered_where_one_passes(editor: Client, cpu: str, offered: list[str]) -> None:
    factories.resource_quota({"pods": "9"})
    app = container(limits={"cpu": "2"}, requests={"cpu": cpu})
    running(request(pod(app, name="web", uid="uid-web"), namespace="team"))
    form = {**GRID, "row-0-resource": "cpu", "row-0-maxLimitRequestRatio": "1.5"}
    state = editor.get(PAGE).context["state"]
    sent = {"seen": "1", "shown": state.shown, "yaml": state.draft.text, **form}
    answer: Any = editor.post(f"{PAGE}restarts/", sent)
    assert answer.status_code == 200
    assert [each.amount for each in answer.context["values"]] == offered
