"""One quota: its limits tried and saved with a reason, its usage, denials, changes, requests."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from policies.drafts import danger
from policies.models import PolicyRevision, QuotaUsagePoint, ResourceQuota
from tests import factories, people
from tests.portal.pages.quotas.test_board import quota, refused

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

    from admission.models import AuditEvent

pytestmark = pytest.mark.django_db
ADDRESS = "/quotas/prod/team/rq/"
PANEL = {"HX-Request": "true", "HX-Target": "quota-panel"}
QUESTIONS = 26


def pod(**requests: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    return {
        "uid": "5b0f7c9e-2f1c-4a5d-8a53-0a4f6d1c2b3e",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "api-0",
        "namespace": "team",
        "operation": "CREATE",
        "userInfo": {"username": "u"},
        "object": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "api-0", "namespace": "team"},
            "spec": spec,
        },
    }


def waits(cpu: str, **fields: Any) -> AuditEvent:
    return refused(1, "requests.cpu", cpu, name="api-0", **{"request": pod(cpu=cpu), **fields})


@pytest.fixture
def editor() -> Client:
    client = Client()
    client.force_login(people.person("eve", "editor"))
    return client


def panel(client: Client, query: str = "") -> Any:
    response = client.get(f"{ADDRESS}{query}", headers=PANEL)
    assert response.status_code == 200
    assert response.templates[0].name == "quotas/_panel.html"
    return response.context["panel"]


def save(client: Client, *, seen: int = 1, reason: str = "room", **hard: str) -> Any:
    fields = {f"hard:{name.replace('_', '.')}": text for name, text in hard.items()}
    return client.post(ADDRESS, {**fields, "seen": seen, "reason": reason}, headers=PANEL)


def limits() -> dict[str, str]:
    return {row.resource: str(row.hard) for row in ResourceQuota.objects.get().rows.all()}


def test_limits_are_saved_with_a_reason_and_can_be_undone(editor: Client) -> None:
    quota({"pods": "10", "requests.cpu": "4"}, {"pods": "10"})
    response = save(editor, pods="12", requests_cpu="4")
    assert limits() == {"pods": "12", "requests.cpu": "4"}
    revision = PolicyRevision.objects.get(kind="ResourceQuota", number=2)
    assert (revision.user, revision.reason) == ("eve", "room")
    assert response.context["panel"].seen == 2
    undo = json.loads(response["HX-Trigger"])["quota-saved"]["undo"]
    assert undo["fields"] == {"hard:pods": "10", "seen": 2, "reason": "undo revision 2"}
    undone = editor.post(undo["address"], undo["fields"])
    assert undone.status_code == 302
    assert limits() == {"pods": "10", "requests.cpu": "4"}


def test_several_limits_are_one_revision(editor: Client) -> None:
    quota({"pods": "10", "requests.cpu": "4"})
    save(editor, pods="12", requests_cpu="6")
    assert limits() == {"pods": "12", "requests.cpu": "6"}
    assert PolicyRevision.objects.filter(kind="ResourceQuota").count() == 2


@pytest.mark.parametrize("text", ["", "ten", "-1", "1 Gi", "9" * 80 + "x"])
def test_what_is_no_limit_is_refused_at_its_field(editor: Client, text: str) -> None:
    quota({"pods": "10"})
    response = save(editor, pods=text)
    (cell,) = response.context["panel"].edit.cells
    assert cell.error
    assert limits() == {"pods": "10"}
    assert editor.post(ADDRESS, {"hard:pods": text, "reason": "r"}).status_code == 422


def test_what_kubernetes_refuses_is_said_at_the_field(editor: Client) -> None:
    quota({"pods": "10"})
    (cell,) = save(editor, pods="1.5").context["panel"].edit.cells
    assert cell.error
    assert limits() == {"pods": "10"}


def test_a_reason_is_needed(editor: Client) -> None:
    quota({"pods": "10"})
    assert save(editor, pods="12", reason=" ").context["panel"].edit.reason_error
    assert save(editor, pods="10").context["panel"].edit.problem
    assert limits() == {"pods": "10"}


def test_a_save_on_an_older_revision_is_refused(editor: Client) -> None:
    quota({"pods": "10"})
    quota({"pods": "11"})
    edit = save(editor, seen=1, pods="12").context["panel"].edit
    assert edit.problem
    assert [str(cell.hard) for cell in edit.cells] == ["11"]
    assert limits() == {"pods": "11"}


def test_readers_see_limits_without_fields() -> None:
    quota({"pods": "10"})
    client = Client()
    client.force_login(people.person())
    response = client.get(ADDRESS)
    assert not response.context["panel"].may_change
    assert b'name="hard:pods"' not in response.content
    assert client.post(ADDRESS, {"hard:pods": "12", "reason": "r"}).status_code == 403
    assert limits() == {"pods": "10"}


def what_if(client: Client, **hard: str) -> Any:
    fields = {f"hard:{name.replace('_', '.')}": text for name, text in hard.items()}
    response = client.get(f"{ADDRESS}what-if/", fields)
    assert response.status_code == 200
    return response.context["edit"]


def test_typed_limits_are_tried_on_whoever_waits(editor: Client) -> None:
    quota({"requests.cpu": "8"}, {"requests.cpu": "6"})
    waits("3")
    assert what_if(editor, requests_cpu="9").passing == ["api"]
    still = what_if(editor, requests_cpu="8500m")
    assert [trial.owner.name for trial in still.refused] == ["api"]
    assert limits() == {"requests.cpu": "8"}


def test_a_request_that_was_not_kept_is_not_known(editor: Client) -> None:
    quota({"requests.cpu": "8"}, {"requests.cpu": "6"})
    waits("3", request={})
    edit = what_if(editor, requests_cpu="9")
    assert (edit.passing, edit.refused, len(edit.unknown)) == ([], [], 1)


def test_running_totals_add_up_namespace_and_cluster(editor: Client) -> None:
    quota({"pods": "10", "requests.cpu": "4"}, {"pods": "5"})
    quota({"pods": "5"}, {"pods": "1"}, name="more")
    quota({"pods": "7"}, {"pods": "2"}, in_="other")
    quota({"pods": "70"}, in_cluster="elsewhere")
    totals = [
        (each.resource, each.place, each.quotas, str(each.before), str(each.after), str(each.used))
        for each in what_if(editor, pods="12", requests_cpu="5").totals
    ]
    assert totals == [
        ("pods", "team", 2, "15", "17", "6"),
        ("pods", "prod", 3, "22", "24", "8"),
        ("requests.cpu", "team", 1, "4", "5", "0"),
        ("requests.cpu", "prod", 1, "4", "5", "0"),
    ]


def test_a_limit_below_what_is_used_is_said(editor: Client) -> None:
    quota({"pods": "10"}, {"pods": "5"})
    assert [cell.resource for cell in what_if(editor, pods="4").below_used] == ["pods"]


@pytest.mark.parametrize(
    ("hard", "used", "wanted", "proposed"),
    [("8", "6", "3", "9"), ("20", "20", "500m", "21"), ("8500m", "8", "1", "9000m")],
)
def test_raising_proposes_what_lets_the_waiting_in(
    editor: Client, hard: str, used: str, wanted: str, proposed: str
) -> None:
    quota({"requests.cpu": hard}, {"requests.cpu": used})
    waits(wanted)
    (cell,) = panel(editor, "?raise=1").edit.cells
    assert cell.typed == proposed


@pytest.mark.parametrize(
    ("hard", "proposed"), [("10", "11"), ("4", "5"), ("0", "1"), ("100", "110")]
)
def test_raising_without_anybody_waiting_proposes_a_tenth(
    editor: Client, hard: str, proposed: str
) -> None:
    quota({"pods": hard})
    (cell,) = panel(editor, "?raise=1").edit.cells
    assert cell.typed == proposed


def test_usage_shows_the_steps_of_the_limit(editor: Client) -> None:
    made = quota({"pods": "10"}, {"pods": "7"})
    quota({"pods": "8"}, {"pods": "7"})
    QuotaUsagePoint.objects.create(
        cluster=made.owner,
        quota_uid=made.uid,
        taken=timezone.now() - timedelta(days=3),
        used={"pods": "4"},
    )
    plot = panel(editor, "?days=7").plot
    assert plot.limit_words == "10"
    assert [(step.number, step.limit) for step in plot.steps][-1] == (2, "8")
    assert [(str(used), str(limit)) for _, used, limit in plot.rows] == [("7", "8"), ("4", "10")]


@pytest.mark.parametrize(
    ("ago", "offered"),
    [(timedelta(hours=5), [1]), (timedelta(days=3), [1, 7]), (timedelta(days=9), [1, 7, 14])],
)
def test_time_ranges_are_offered_where_usage_is_recorded(
    editor: Client, ago: timedelta, offered: list[int]
) -> None:
    made = quota({"pods": "10"}, {"pods": "7"})
    QuotaUsagePoint.objects.create(
        cluster=made.owner, quota_uid=made.uid, taken=timezone.now() - ago, used={"pods": "4"}
    )
    plot = panel(editor, "?days=1").plot
    assert list(plot.offered) == offered
    # What was used when the day began is known from the record before it.
    assert [str(used) for _, used, _ in plot.rows] == ["7", "4"]
    assert bool(plot.area)


def test_tabs_count_denials_changes_and_requests(editor: Client) -> None:
    quota({"requests.cpu": "10"})
    quota({"requests.cpu": "8"}, {"requests.cpu": "6"})
    waits("3")
    refused(3000, "requests.cpu", "3", name="old")
    response = editor.get(f"{ADDRESS}?tab=changes")
    shown = response.context["panel"]
    assert [(each.name, each.number) for each in shown.denials.owners] == [("api", 1), ("old", 1)]
    assert [change.limits for change in shown.changes] == [
        [("requests.cpu", "10", "8")],
        [("requests.cpu", "none", "10")],
    ]
    assert [owner.name for owner in shown.line.demand.owners] == ["api"]


def test_the_board_opens_with_a_panel(editor: Client) -> None:
    quota({"pods": "10"})
    response = editor.get("/quotas/?open=prod/team/rq")
    assert response.context["panel"].line.placed.quota.name == "rq"
    assert editor.get("/quotas/?open=prod/team/none").context["panel"] is None


def test_what_is_not_there_is_not_found(editor: Client) -> None:
    factories.namespace()
    for address in (ADDRESS, f"{ADDRESS}what-if/", "/quotas/none/team/rq/"):
        assert editor.get(address).status_code == 404


def test_questions_do_not_grow_with_what_a_quota_has(
    editor: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        quota({"requests.cpu": str(number + 1)}, {"requests.cpu": "1"})
        quota({"pods": "3"}, in_=f"n-{number}")
    for number in range(5):
        refused(number + 1, "requests.cpu", "3", name=f"a{number}-0", request=pod(cpu="3"))
    panel(editor)
    with django_assert_max_num_queries(QUESTIONS):
        panel(editor, "?raise=1")


def test_a_dangerous_limit_needs_the_name_of_the_namespace(
    editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(danger, "sources", [lambda *_: ["3 running pods could not start again"]])
    quota({"pods": "10"})
    response = save(editor, pods="1")
    assert response.context["panel"].edit.dangers
    assert b'name="confirm"' in response.content
    fields = {"hard:pods": "1", "seen": 1, "reason": "r"}
    editor.post(ADDRESS, {**fields, "confirm": "other"}, headers=PANEL)
    assert limits() == {"pods": "10"}
    editor.post(ADDRESS, {**fields, "confirm": "team"}, headers=PANEL)
    assert limits() == {"pods": "1"}
