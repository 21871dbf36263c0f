"""A decision is kept as a test with its answer; what is not on record as a whole is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies.models import KeptTest, PolicyRevision
from tests import factories, people
from tests.builders import container, pod

if TYPE_CHECKING:
    from django.test import Client

    from admission.models import AuditEvent
    from tests.portal.pages.decisions.conftest import Decided

pytestmark = pytest.mark.django_db
GREEDY = pod(container(limits={"cpu": "4"}), namespace="team")
FORM = {"name": "four-are-refused", "verdict": "deny", "reasons": "MaxConstraint"}


@pytest.fixture
def editor(client: Client, db: None) -> Client:
    client.force_login(people.person("ed", "editor"))
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    return client


def address(event: AuditEvent) -> str:
    return f"/decisions/{event.pk}/keep"


def keep(client: Client, event: AuditEvent, **changed: str) -> Any:
    return client.post(address(event), {**FORM, **changed})


def test_a_denial_is_kept_with_its_reasons_and_passes(editor: Client, decided: Decided) -> None:
    event = decided(GREEDY)
    assert address(event) in editor.get(f"/decisions/{event.pk}").content.decode()
    panel = editor.get(f"/decisions/{event.pk}/panel", headers={"HX-Request": "true"})
    assert address(event) in panel.content.decode()
    context = editor.get(address(event)).context
    assert (context["verdict"], context["reasons"]) == ("deny", "MaxConstraint")
    kept = editor.post(address(event), FORM, follow=True)
    assert kept.redirect_chain == [(f"/decisions/{event.pk}", 302)]
    assert "Kept as four-are-refused. It passes today." in kept.content.decode()
    test = KeptTest.objects.get()
    assert (test.namespace_name, test.author, test.value.decision) == ("team", "ed", event.pk)
    assert test.value.user == "ada"
    assert test.value.expected.reasons == ("MaxConstraint",)
    assert PolicyRevision.objects.get(kind="PolicyTest").reason == f"kept from decision {event.pk}"


def test_another_answer_may_be_expected_and_is_red_today(editor: Client, decided: Decided) -> None:
    event = decided(GREEDY)
    kept = editor.post(address(event), {**FORM, "verdict": "allow"}, follow=True)
    assert "It is red today: it is expected to be allowed" in kept.content.decode()


def test_an_allowed_object_is_expected_to_be_allowed(editor: Client, decided: Decided) -> None:
    event = decided(pod(container(limits={"cpu": "1"}), namespace="team"))
    context = editor.get(address(event)).context
    assert (context["verdict"], context["reasons"]) == ("allow", "")


def test_the_changes_of_today_are_expected_where_that_is_chosen(
    editor: Client, decided: Decided
) -> None:
    factories.limit_range({"type": "Container", "default": {"memory": "1Gi"}, "max": {"cpu": "2"}})
    event = decided(pod(container(limits={"cpu": "1"}), namespace="team"))
    context = editor.get(address(event)).context
    assert (len(context["changes"]) > 0, context["is_patch_expected"]) == (True, True)
    allowed = {"verdict": "allow", "reasons": ""}
    kept = editor.post(address(event), {**FORM, **allowed, "patch": "on"}, follow=True)
    assert "It passes today." in kept.content.decode()
    assert KeptTest.objects.get().value.expected.patch == tuple(context["changes"])
    keep(editor, event, name="any-change", **allowed)
    assert KeptTest.objects.get(name="any-change").value.expected.patch is None


def test_a_refused_object_has_no_changes_to_expect(editor: Client, decided: Decided) -> None:
    event = decided(GREEDY)
    assert editor.get(address(event)).context["changes"] is None
    keep(editor, event, patch="on")
    assert KeptTest.objects.get().value.expected.patch is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": ""}, "name"),
        ({"name": "No Name"}, "lower"),
        ({"reasons": "Unheard"}, "unknown reason"),
    ],
)
def test_wrong_fields_are_named(
    editor: Client, decided: Decided, changed: dict[str, str], words: str
) -> None:
    refused = keep(editor, decided(GREEDY), **changed)
    assert refused.status_code == 422
    assert words in refused.context["form_error"]
    assert not KeptTest.objects.exists()


def test_a_name_is_taken_once(editor: Client, decided: Decided) -> None:
    event = decided(GREEDY)
    assert keep(editor, event).status_code == 302
    assert keep(editor, event, verdict="allow").status_code == 422
    assert KeptTest.objects.get().value.expected.verdict == "deny"


def test_a_cut_object_is_refused_with_a_sentence(editor: Client, decided: Decided) -> None:
    large = pod(container(limits={"cpu": "4"}), namespace="team")
    large["spec"]["containers"] += [
        {"name": f"c{index}", "image": "x" * 400, "env": [{"name": "A" * 200, "value": "b" * 900}]}
        for index in range(200)
    ]
    event = decided(large)
    page = editor.get(address(event))
    assert page.context["refusal"]
    assert '<form class="body form"' not in page.content.decode()
    assert keep(editor, event).status_code == 422
    assert not KeptTest.objects.exists()


def test_only_who_may_write_the_namespace_keeps_tests(client: Client, decided: Decided) -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    event = decided(GREEDY)
    client.force_login(people.person("vi"))
    assert "Keep as test" not in client.get(f"/decisions/{event.pk}").content.decode()
    assert client.get(address(event)).status_code == 403
    assert keep(client, event).status_code == 403
