"""A test as YAML: kept from what was tried, edited with a reason, run, deleted and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from policies import services
from policies.manifests.render import render_documents, render_manifests
from policies.models import KeptTest, LimitRange, PolicyRevision
from tests import factories, people
from tests.kept_tests import denied, kept, pod

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db
NEW = "/tests/new/prod/team/"
MAX = {"type": "Container", "default": {"memory": "1Gi"}, "max": {"cpu": "2"}}


@pytest.fixture
def editor() -> Client:
    factories.limit_range(MAX)
    return signed_in("editor")


def signed_in(role: str) -> Client:
    client = Client()
    client.force_login(people.person(role, role, cluster="prod", namespace="team"))
    return client


def stored(name: str = "too-large", **spec: Any) -> KeptTest:
    test = services.take_over(KeptTest(namespace=factories.namespace()), kept(name, **spec))
    saved: KeptTest = services.save_kept_test(test=test, user="ada").instance
    return saved


def page_of(test: KeptTest) -> str:
    return f"/tests/{test.pk}/"


def send(client: Client, address: str, manifest: dict[str, Any], do: str, **fields: Any) -> Any:
    text = render_documents([manifest])
    return client.post(address, {"text": text, "do": do, "reason": "why", **fields})


def test_what_was_simulated_is_kept_with_its_changes(editor: Client) -> None:
    outcome = editor.post(
        "/clusters/prod/namespaces/team/simulate/", {"yaml": render_documents([pod("1")])}
    )
    text = outcome.context["keep_text"]
    assert NEW in outcome.content.decode()
    filled = editor.post(NEW, {"do": "fill", "test": text.replace("\n", "\r\n")})
    assert filled.context["judged"].passes
    assert filled.context["yaml"] == text
    assert not KeptTest.objects.exists()
    sent = {"do": "save", "text": text, "reason": "why", "seen": filled.context["seen"]}
    made = editor.post(NEW, sent)
    test = KeptTest.objects.get()
    assert (made.status_code, made["Location"]) == (302, page_of(test))
    assert (test.author, test.value.expected.allowed) == ("editor", True)
    assert test.value.expected.patch
    assert PolicyRevision.objects.get(kind="PolicyTest").reason == "why"


def test_what_was_tried_in_the_editor_is_kept_with_the_answer_of_the_draft(editor: Client) -> None:
    page = "/clusters/prod/namespaces/team/limitranges/lr/"
    draft = LimitRange.objects.get().to_manifest()
    draft["spec"]["limits"][0]["max"]["cpu"] = "500m"
    sent = {"yaml": render_manifests([draft]), "shown": "", "pod": render_documents([pod("1")])}
    tried: Any = editor.post(page, {**sent, "do": "try"})
    assert NEW in tried.content.decode()
    # The form of the editor sends its own fields along, the revision of the policy among them.
    kept_text = tried.context["keep_text"]
    filled = editor.post(NEW, {**sent, "seen": "1", "do": "fill", "test": kept_text})
    assert filled.context["seen"] == 0
    judged = filled.context["judged"]
    assert judged.test.expected.reasons == ("MaxConstraint",)
    assert not judged.passes, "under the stored policies it is still allowed"


def test_viewers_keep_nothing(editor: Client) -> None:
    viewer = signed_in("viewer")
    outcome = viewer.get("/clusters/prod/namespaces/team/simulate/?c=app")
    assert outcome.context["found"]
    assert "keep_text" not in outcome.context or not outcome.context["keep_text"]
    assert viewer.get(NEW).status_code == 403
    assert send(viewer, NEW, kept(), "save").status_code == 403
    assert editor.get("/tests/new/prod/other/").status_code == 404


def test_an_edit_is_saved_with_its_reason_and_revision(editor: Client) -> None:
    test = stored()
    wanted = kept(expect=denied())
    address = page_of(test)
    assert send(editor, address, wanted, "save", seen="1", reason=" ").status_code == 422
    assert send(editor, address, wanted, "save", seen="1").status_code == 302
    test.refresh_from_db()
    assert (test.revision, test.value.expected.reasons) == (2, ())
    assert PolicyRevision.objects.filter(kind="PolicyTest").latest("number").reason == "why"
    stale = send(editor, address, kept(), "save", seen="1")
    assert (stale.status_code, stale.context["seen"]) == (409, 1)
    assert KeptTest.objects.get().revision == 2


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"spec": {"expect": {"verdict": "maybe"}, "object": pod()}}, "spec.expect.verdict"),
        ({"spec": {"expect": denied("Unheard"), "object": pod()}}, "spec.expect.reasons[0]"),
        ({"spec": {"expekt": denied(), "expect": denied(), "object": pod()}}, "spec.expekt"),
        ({"metadata": {"name": "other", "namespace": "team"}}, "metadata.name"),
        ({"metadata": {"name": "too-large", "namespace": "other"}}, "metadata.namespace"),
        ({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": []}}, ""),
    ],
)
def test_wrong_fields_are_named_at_their_lines(
    editor: Client, changed: dict[str, Any], field: str
) -> None:
    test = stored()
    refused = send(editor, page_of(test), {**kept(), **changed}, "save", seen="1")
    assert refused.status_code == 422
    assert field in {each.field for each in refused.context["problems"]}
    assert KeptTest.objects.get().revision == 1


def test_a_text_that_is_no_yaml_is_shown_again(editor: Client) -> None:
    test = stored()
    refused = editor.post(page_of(test), {"do": "run", "text": "a: [", "reason": ""})
    assert (refused.status_code, refused.context["yaml"]) == (422, "a: [")
    [problem] = refused.context["problems"]
    assert problem.line


def test_the_typed_text_is_run_and_not_saved(editor: Client) -> None:
    test = stored()
    found = send(editor, page_of(test), kept(object=pod("1")), "run", reason="")
    assert not found.context["judged"].passes
    assert [each.aspect for each in found.context["judged"].differences] == ["verdict"]
    assert KeptTest.objects.get().revision == 1


def test_viewers_run_the_stored_test(editor: Client) -> None:
    test = stored()
    viewer = signed_in("viewer")
    page = viewer.get(page_of(test))
    assert 'value="save"' not in page.content.decode()
    assert viewer.post(page_of(test), {"do": "run"}).context["judged"].passes
    assert send(viewer, page_of(test), kept(), "save").status_code == 403


def test_todays_answer_is_put_into_the_text(editor: Client) -> None:
    test = stored(object=pod("1"))
    shown = send(editor, page_of(test), kept(object=pod("1")), "accept")
    assert shown.context["judged"].passes
    assert KeptTest.objects.get().revision == 1
    again = editor.post(page_of(test), {"do": "run", "text": shown.context["yaml"]})
    assert again.context["judged"].passes
    assert again.context["judged"].test.expected.patch


def test_a_deletion_is_taken_back_by_its_button(editor: Client) -> None:
    test = stored()
    before = test.to_manifest()
    gone = editor.post(page_of(test), {"do": "delete", "seen": "1"}, follow=True)
    assert not KeptTest.objects.exists()
    [undo] = [each.extra_tags for each in gone.context["messages"]]
    back = editor.post(undo)
    assert back["Location"] == "/tests/"
    assert KeptTest.objects.get().to_manifest() == before


def test_what_was_changed_meanwhile_is_not_deleted(editor: Client) -> None:
    test = stored()
    send(editor, page_of(test), kept(expect=denied()), "save", seen="1")
    assert editor.post(page_of(test), {"do": "delete", "seen": "1"}).status_code == 409
    assert KeptTest.objects.exists()


def test_the_file_of_an_export_is_imported_and_run_by_the_command(
    editor: Client, tmp_path: Path
) -> None:
    stored()
    stored("fine", expect={"verdict": "allow"}, object=pod("1"))
    answer = editor.get("/tests/export/?q=team")
    text = answer.content.decode()
    assert answer["Content-Type"].startswith("application/yaml")
    policies = LimitRange.objects.get().to_manifest()
    (tmp_path / "tests.yaml").write_text(text, "utf-8")
    (tmp_path / "policies.yaml").write_text(render_manifests([policies]), "utf-8")
    assert run(["test", "-f", str(tmp_path)]) == ExitCode.OK
    policies["spec"]["limits"][0]["max"]["cpu"] = "9"
    (tmp_path / "policies.yaml").write_text(render_manifests([policies]), "utf-8")
    assert run(["test", "-f", str(tmp_path)]) == ExitCode.FOUND
    KeptTest.objects.all().delete()
    page = "/clusters/prod/import/"
    seen = editor.post(page, {"text": text, "do": "plan"}).context["plan"].seen
    sent = {"text": text, "seen": seen, "reason": "r", "do": "save"}
    assert editor.post(page, sent).status_code == 302
    assert set(KeptTest.objects.values_list("name", flat=True)) == {"too-large", "fine"}


def test_an_export_has_what_the_list_asks_for_and_one_may_see(editor: Client) -> None:
    stored()
    stored("second")
    hidden = services.take_over(
        KeptTest(namespace=factories.namespace("other")), kept("hidden", namespace="other")
    )
    services.save_kept_test(test=hidden, user="ada")
    text = editor.get("/tests/export/?q=second").content.decode()
    assert "name: second" in text
    assert "too-large" not in text
    assert "hidden" not in editor.get("/tests/export/").content.decode()
