"""The policy editor over HTTP: who may, what it says, what it writes, and what it never loses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from admission.models import AuditEvent
from policies import services, snapshot
from policies.models import LimitRange, PolicyRevision, PriorityClass, ResourceQuota
from portal.pages.policies.panes.trial import NOT_ON_RECORD
from tests import factories
from tests.people import person, signed_in
from tests.running_pods import asks, on_record, running

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
LIMITS = {"type": "Container", "max": {"cpu": "4"}, "min": {"cpu": "100m"}}
PAGE = "/clusters/prod/namespaces/team/limitranges/lr/"
NEW = "/clusters/prod/namespaces/team/limitranges/new"
GRID = {"form": "on", "name": "lr", "enforcement": "enforce"}
ROW = {"row-0-item": "0", "row-0-type": "Container", "row-0-resource": "cpu", "row-0-min": "100m"}


@pytest.fixture
def editor() -> Client:
    factories.limit_range(LIMITS)
    return signed_in(person("ed", "editor", cluster="prod", namespace="team"))


def opened(client: Client, page: str = PAGE) -> dict[str, str]:
    """What the page would send as it stands, form included."""
    response: Any = client.get(page)
    assert response.status_code == 200
    state = response.context["state"]
    seen = str(response.context["revision"])
    return {"seen": seen, "shown": state.shown, "yaml": state.draft.text}


def save(client: Client, given: dict[str, str], page: str = PAGE) -> Any:
    return client.post(page, {"reason": "because", **given, "do": "save"})


def maximum() -> str:
    return str(LimitRange.objects.get(name="lr").rows.get().max)


def test_form_is_saved_with_who_and_why(editor: Client) -> None:
    response = save(editor, {**opened(editor), **GRID, **ROW, "row-0-max": "2"})
    assert (response.status_code, response["Location"]) == (302, PAGE)
    revision = PolicyRevision.objects.get(kind="LimitRange", number=2)
    assert (revision.user, revision.reason, maximum()) == ("ed", "because", "2")


def test_yaml_is_saved(editor: Client) -> None:
    given = opened(editor)
    text = given["yaml"].replace('cpu: "4"', "cpu: 3")
    assert save(editor, {**given, "yaml": text}).status_code == 302
    assert maximum() == "3"


def test_grid_and_what_it_keeps_are_shown(editor: Client) -> None:
    factories.limit_range(LIMITS, {"type": "Pod", "max": {"cpu": None}})
    page = editor.get(PAGE).content.decode()
    assert 'name="row-0-max" value="4" placeholder="\N{EN DASH}"' in page
    assert 'name="row-0-default" value="" placeholder="4"' in page
    assert 'name="row-1-kept" value="1"' in page


def test_saving_what_is_stored_writes_nothing(editor: Client) -> None:
    assert save(editor, opened(editor)).status_code == 302
    assert PolicyRevision.objects.filter(kind="LimitRange").count() == 1


def test_difference_is_told_in_words_before_it_is_saved(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2"}
    response: Any = editor.post(PAGE, given, headers={"HX-Request": "true"})
    assert response.context["changes"] == ["cpu max of Container lowered from 4 to 2"]
    assert maximum() == "4"
    assert response.context["derived"] == {"row-0-default": "2", "row-0-defaultRequest": "2"}


def test_reason_is_required_and_nothing_typed_is_lost(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2", "reason": " "}
    response: Any = save(editor, given)
    assert response.status_code == 422
    assert response.context["form"]["row"][0]["max"].value == "2"
    assert maximum() == "4"


def test_script_asks_first_what_saving_would_change(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2", "do": "ask"}
    response: Any = editor.post(PAGE, given, headers={"HX-Request": "true"})
    assert (response.context["is_asked"], response.context["dangers"]) == (True, [])
    assert (response.context["differences"].added, maximum()) == (1, "4")
    wrong: Any = editor.post(PAGE, {**given, "row-0-max": "x"}, headers={"HX-Request": "true"})
    assert "is_asked" not in wrong.context
    assert wrong.context["draft"].findings


def test_history_names_changes_and_the_page_that_restores_them(editor: Client) -> None:
    factories.limit_range({**LIMITS, "max": {"cpu": "8"}})
    newest, first = editor.get(PAGE).context["history"]
    assert (newest.words, newest.is_current) == (["cpu max of Container raised from 4 to 8"], True)
    assert (first.address, first.is_current) == (f"{PAGE}revisions/1/", False)


def test_draft_that_is_shown_can_be_discarded_from_the_header(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2"}
    sent: Any = editor.post(PAGE, given, headers={"HX-Request": "true"})
    assert sent.context["saved_draft"] is not None
    assert editor.get(PAGE).context["saved_draft"] is None
    assert editor.get(f"{PAGE}?draft").context["saved_draft"] is not None


def test_changed_cell_says_what_it_was_and_is_undone(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2"}
    sent: Any = editor.post(PAGE, given, headers={"HX-Request": "true"})
    (changed,) = sent.context["changed_cells"]
    assert (changed.cell, changed.was, changed.words) == ("row-0-max", "4", "max of cpu")
    undone: Any = editor.post(PAGE, {**given, "do": "use:row-0-max:4"})
    assert undone.context["changed_cells"] == []


def test_page_after_an_error_still_rests_on_the_revision_that_was_read(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "50m"}
    factories.limit_range({**LIMITS, "max": {"cpu": "8"}})
    assert save(editor, given).context["seen"] == 1


def test_error_stands_at_its_cell_and_its_line(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "50m"}
    response: Any = save(editor, given)
    assert response.status_code == 422
    finding = response.context["draft"].findings[0]
    assert finding.cell == "row-0-min"
    assert finding.message in response.context["form"]["row"][0]["min"].errors
    lines = response.context["draft"].text.splitlines()
    assert "100m" in lines[finding.line - 1]


def test_unreadable_yaml_is_kept_and_told_with_its_line(editor: Client) -> None:
    given = {**opened(editor), "yaml": "kind: LimitRange\nspec: [\n"}
    response: Any = save(editor, given)
    assert response.status_code == 422
    assert response.context["draft"].text == given["yaml"]
    assert response.context["draft"].findings[0].line == 3


def test_both_sides_typed_into_asks_which_counts(editor: Client) -> None:
    given = opened(editor)
    typed = {**given, **GRID, **ROW, "row-0-max": "2", "yaml": given["yaml"].replace("4", "3")}
    response: Any = save(editor, typed)
    assert (response.status_code, response.context["state"].is_torn) == (422, True)
    for take, expected in (("take-form", '"2"'), ("take-yaml", '"3"')):
        answer: Any = editor.post(PAGE, {**typed, "do": take})
        assert f"cpu: {expected}" in answer.context["draft"].text


def test_item_that_the_form_keeps_outlives_one_before_it(editor: Client) -> None:
    factories.limit_range(LIMITS, {"type": "Pod", "max": {"cpu": None}})
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "4", "row-1-kept": "1"}
    dropped: Any = editor.post(PAGE, {**given, "do": "drop:row:0"})
    (kept,) = dropped.context["form"]["row"]
    state = dropped.context["state"]
    sent = {"seen": given["seen"], "shown": state.shown, "yaml": state.draft.text}
    answer: Any = editor.post(PAGE, {**sent, **GRID, "row-0-kept": kept.kept})
    assert [each["type"] for each in answer.context["draft"].manifest["spec"]["limits"]] == ["Pod"]


def test_lines_come_and_go_without_scripts(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2"}
    response: Any = editor.post(PAGE, {**given, "do": "add:row"})
    assert [row["max"].value for row in response.context["form"]["row"]] == ["2", ""]
    response = editor.post(PAGE, {**given, "do": "drop:row:0"})
    assert response.context["form"]["row"] == []


def test_later_write_opens_a_merge_and_both_are_kept(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2"}
    factories.limit_range({**LIMITS, "default": {"cpu": "1"}})
    response: Any = save(editor, given)
    assert (response.status_code, response.context["conflicts"]) == (409, [])
    merged = response.context["merged_text"]
    assert all(part in merged for part in ("default:", 'cpu: "2"'))
    again = {"seen": str(response.context["revision"]), "yaml": merged, "shown": "", "reason": "b"}
    assert save(editor, again).status_code == 302
    assert (maximum(), str(LimitRange.objects.get(name="lr").rows.get().default)) == ("2", "1")


def test_conflicting_field_is_named(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2"}
    factories.limit_range({**LIMITS, "max": {"cpu": "8"}})
    assert save(editor, given).context["conflicts"] == ["spec.limits.Container.max.cpu"]


def test_new_policy_is_made_once(editor: Client) -> None:
    given = {**opened(editor, NEW), **GRID, "name": "more", "row-0-type": "Pod"}
    given |= {"row-0-resource": "cpu", "row-0-max": "8"}
    assert save(editor, given, NEW).status_code == 302
    assert LimitRange.objects.filter(name="more").exists()
    assert save(editor, given, NEW).status_code == 422


def test_enforcement_in_the_api_server_is_switched(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "4", "in_api_server": "enforce"}
    assert "Also in the API server" in editor.get(PAGE).content.decode()
    assert save(editor, given).status_code == 302
    assert LimitRange.objects.get(name="lr").in_api_server == "enforce"


def test_enforcement_is_switched(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "4", "enforcement": "audit"}
    assert save(editor, given).status_code == 302
    assert LimitRange.objects.get(name="lr").enforcement == "audit"


def test_deleted_policy_is_restored_from_its_versions(editor: Client) -> None:
    deleted = editor.post(PAGE, {"do": "delete", "reason": "gone", "seen": "1"})
    assert (deleted.status_code, deleted["Location"]) == (302, f"{PAGE}revisions/")
    assert not LimitRange.objects.exists()
    assert editor.get(PAGE)["Location"] == f"{PAGE}revisions/"
    restored = editor.post(f"{PAGE}revisions/2/", {"reason": "back"})
    assert (restored.status_code, restored["Location"]) == (302, PAGE)
    assert maximum() == "4"


def test_limit_is_typed_in_the_row_of_its_priority_and_added_by_a_button(editor: Client) -> None:
    scopes = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    factories.priority_class()
    factories.resource_quota({"pods": "3"}, scopeSelector={"matchExpressions": [scopes]})
    factories.resource_quota({"requests.cpu": "4"}, name="other")
    page = "/clusters/prod/namespaces/team/resourcequotas/rq/"
    text = editor.get(page).content.decode()
    assert all(text.count(f'name="hard-0-{cell}"') == 1 for cell in ("resource", "amount"))
    form = {"form": "on", "name": "rq", "enforcement": "enforce", "hard-0-resource": "pods"}
    form |= {"hard-0-amount": "3", "scope-0-scopeName": "PriorityClass", "scope-0-operator": "In"}
    given = {**opened(editor, page), **form, "scope-0-values": "high"}
    added: Any = editor.post(page, {**given, "do": "add:hard:requests.cpu"})
    lines = [row["resource"].value for row in added.context["form"]["hard"]]
    assert lines == ["pods", "requests.cpu"]


@pytest.mark.parametrize("page", [PAGE, "/clusters/prod/priorityclasses/high/"])
def test_what_was_changed_meanwhile_is_not_deleted(editor: Client, page: str) -> None:
    client = signed_in(person("all", "editor"))
    factories.priority_class()
    seen = client.get(page).context["revision"]
    factories.priority_class(value=2000)
    factories.limit_range({**LIMITS, "max": {"cpu": "8"}})
    stale: Any = client.post(page, {"do": "delete", "reason": "gone", "seen": str(seen)})
    assert (stale.status_code, stale.context["is_stale"]) == (409, True)
    now = str(stale.context["revision"])
    assert client.post(page, {"do": "delete", "reason": "gone", "seen": now}).status_code == 302


def test_any_version_is_restored_exactly_and_any_two_compared(editor: Client) -> None:
    before = LimitRange.objects.get().to_manifest()
    factories.limit_range({"type": "Pod", "max": {"memory": "1Gi"}})
    response: Any = editor.get(f"{PAGE}revisions/", {"a": "1", "b": "2"})
    assert "Pod added" in response.context["compared"]["changes"]
    assert editor.post(f"{PAGE}revisions/1/", {"reason": ""}).status_code == 422
    assert editor.post(f"{PAGE}revisions/1/", {"reason": "back"}).status_code == 302
    assert LimitRange.objects.get().to_manifest() == before


def test_pod_is_tried_against_the_draft_and_the_stored(editor: Client) -> None:
    pod = "kind: Pod\nspec: {containers: [{name: c, resources: {limits: {cpu: 3}}}]}\n"
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2", "pod": pod, "do": "try"}
    response: Any = editor.post(PAGE, given)
    verdicts = [response.context[name].allowed for name in ("verdict", "verdict_now")]
    assert verdicts == [False, True]
    assert maximum() == "4"


def test_recent_object_of_the_namespace_is_tried(editor: Client) -> None:
    factories.resource_quota({"pods": "9"})
    running(asks("web-1", "3"), asks("web-2", "3"), asks("batch-1", "1", owner=False))
    offered = editor.get(PAGE).context["recent"]
    assert [(each.kind, each.name, each.verdict) for each in offered] == [
        ("Pod", "batch", "allowed"), ("Pod", "web", "allowed"),
    ]  # fmt: skip
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2", "do": "try:recent"}
    tried: Any = editor.post(PAGE, {**given, "recent": offered[1].decision})
    assert (tried.context["verdict"].allowed, tried.context["verdict_now"].allowed) == (False, True)
    assert "web-2" in tried.context["pod"]
    gone: Any = editor.post(PAGE, {**given, "recent": "0" * 16})
    assert gone.context["try_error"] == NOT_ON_RECORD


def test_recent_objects_of_other_namespaces_cannot_be_read(editor: Client) -> None:
    on_record(asks("web-1", "3"))
    elsewhere = AuditEvent.objects.get()
    factories.namespace("elsewhere")
    other = signed_in(person("ot", "editor", cluster="prod", namespace="elsewhere"))
    page = PAGE.replace("/team/", "/elsewhere/").replace("lr/", "new")
    assert other.get(page).context["recent"] == []
    given = {"form": "on", "name": "x", "do": "try:recent", "recent": elsewhere.id}
    assert other.post(page, given).context["try_error"] == NOT_ON_RECORD


def test_example_beyond_the_maximum_of_the_draft_is_refused(editor: Client) -> None:
    given = {**opened(editor), **GRID, **ROW, "row-0-max": "2"}
    verdicts = {}
    for title in ("At the maximum", "Above the maximum"):
        tried: Any = editor.post(PAGE, {**given, "do": f"try:{title}"})
        verdicts[title] = tried.context["verdict"].allowed
    assert verdicts == {"At the maximum": True, "Above the maximum": False}
    parts: Any = editor.post(PAGE, {**given, "do": "try:Bare pod"}, headers={"HX-Request": "true"})
    assert b'id="pod-field" hx-swap-oob="true"' in parts.content


def test_who_may_do_what(editor: Client) -> None:
    viewer = signed_in(person("vi", "viewer", cluster="prod"))
    other = signed_in(person("ot", "editor", cluster="prod", namespace="elsewhere"))
    given = opened(editor)
    assert viewer.get(PAGE).context["may_write"] is False
    for do in ("save", "delete", "add:row", "try", ""):
        assert viewer.post(PAGE, {**given, "do": do, "reason": "r"}).status_code == 403
    assert b'method="post" action="/clusters' not in viewer.get(PAGE).content
    for page in (PAGE, NEW, f"{PAGE}revisions/", f"{PAGE}revisions/1/"):
        assert other.get(page).status_code == 404
        assert other.post(page, {**given, "do": "save"}).status_code == 404
    assert Client().get(PAGE)["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize(
    "address",
    ["namespaces/team/limitranges/none/", "namespaces/none/limitranges/new", "namespaces/team/x/y/",
     "namespaces/team/priorityclasses/new", "priorityclasses/none/"],
)  # fmt: skip
def test_what_is_not_there_is_404(editor: Client, address: str) -> None:
    assert editor.get(f"/clusters/prod/{address}").status_code == 404


def test_priority_class_and_limited_resources_have_editors(editor: Client) -> None:
    client = signed_in(person("all", "editor"))
    page = "/clusters/prod/priorityclasses/new"
    given = {**opened(client, page), "form": "on", "name": "high", "value": "1000"}
    assert save(client, given, page).status_code == 302
    assert PriorityClass.objects.get(name="high").value == 1000
    page = "/clusters/prod/limitedresources/"
    scope = {"scope-0-entry": "0", "scope-0-scopeName": "PriorityClass", "scope-0-operator": "In"}
    lines = {"entry-0-resource": "pods", **scope, "scope-0-values": "high"}
    given = {**opened(client, page), "form": "on", **lines}
    assert save(client, given, page).status_code == 302
    assert save(client, {**given, "entry-0-resource": "x"}, page).status_code == 409
    assert save(editor, given, page).status_code == 403


@pytest.mark.parametrize(
    ("page", "most"), [(PAGE, 30), ("/policies/?cluster=prod", 16), (f"{PAGE}revisions/", 14)]
)
def test_number_of_queries_does_not_grow(
    editor: Client,
    page: str,
    most: int,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    factories.resource_quota({"pods": "1"})
    editor.get(page)  # what a process asks once, it has asked now
    # The record is searched in stretches of days, of which there may be any few.
    with django_assert_max_num_queries(most) as few:
        editor.get(page)
    for number in range(8):
        factories.limit_range(LIMITS, name=f"lr-{number}")
        factories.resource_quota({"pods": "1"}, name=f"rq-{number}")
    with django_assert_max_num_queries(len(few)):
        editor.get(page)


def test_managers_are_shown_and_an_edit_of_a_set_is_warned_of(editor: Client) -> None:
    assert b"Managed by" not in editor.get(PAGE).content
    with services.managed_by(services.FieldWriter("git:platform", "3f2a91c")):
        factories.limit_range({**LIMITS, "max": {"cpu": "5"}})
    shown = editor.get(PAGE)
    managers = shown.context["managers"]
    assert (managers.set, str(managers.set_manager)) == ("platform", "git:platform, commit 3f2a91c")
    assert b"is a conflict when the set is applied again" in shown.content
    save(editor, {**opened(editor), **GRID, **ROW, "row-0-max": "2"})
    again = editor.get(PAGE).context["managers"]
    assert (again.set, again.fields["spec.limits"].manager) == ("platform", "ui:ed")
    versions = editor.get(f"{PAGE}revisions/").content.decode()
    assert "git:platform, commit 3f2a91c" in versions


def test_what_a_quota_uses_is_unknown_while_it_is_not_counted() -> None:
    factories.resource_quota({"pods": "5", "requests.cpu": "2"})
    ResourceQuota.objects.update(uncounted=["pods"])
    snapshot.forget()
    client = signed_in(person("ed", "editor", cluster="prod", namespace="team"))
    response: Any = client.get("/clusters/prod/namespaces/team/resourcequotas/rq/")
    rows = response.context["form"]["hard"]
    assert {row["resource"].value: row.used for row in rows} == {
        "pods": "unknown",
        "requests.cpu": "0",
    }
