"""What keeps people from hurting their cluster in the editor, and from losing what they typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies.lints import LintCode
from policies.models import KeptDraft, LimitRange, MetadataPolicy
from tests import factories, people

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db
PLACE = "/clusters/prod/namespaces/team"
NEW = f"{PLACE}/metadatapolicies/new"
RULES = """\
apiVersion: policy.gatehouse.dev/v1alpha1
kind: MetadataPolicy
metadata: {name: all, namespace: team}
spec:
  rules:
  - policyAction: {reject: true}
"""


@pytest.fixture
def ed() -> User:
    factories.namespace()
    return people.person("ed", "editor", cluster="prod", namespace="team")


@pytest.fixture
def editor(client: Client, ed: User) -> Client:
    client.force_login(ed)
    return client


def send(client: Client, page: str = NEW, **fields: str) -> Any:
    state = client.get(page).context["state"]
    given = {"seen": "0", "shown": state.shown, "yaml": state.draft.text, "reason": "why"}
    return client.post(page, {**given, **fields})


def rules_of(answer: Any) -> list[Any]:
    return answer.context["form"]["rule"]


def test_a_preset_takes_the_place_of_the_empty_rule(editor: Client) -> None:
    begun = {"form": "on", "name": "x", "rule-0-does": "refuse", "if-0-rule": "0"}
    begun |= {"if-0-on": "label", "if-0-key": "", "if-0-is": "DoesNotExist"}
    answer = send(editor, do="ready:forbid", **begun)
    (rule,) = rules_of(answer)
    assert [row["is"].value for row in rule.conditions] == ["Exists"]


def test_a_preset_leaves_a_rule_that_says_something(editor: Client) -> None:
    begun = {"form": "on", "name": "x", "rule-0-does": "refuse", "if-0-rule": "0"}
    begun |= {"if-0-on": "label", "if-0-key": "team", "if-0-is": "DoesNotExist"}
    assert len(rules_of(send(editor, do="ready:forbid", **begun))) == 2


@pytest.mark.parametrize(("tick", "is_saved"), [({}, False), ({"rule-0-every": "on"}, True)])
def test_a_rule_without_conditions_needs_its_tick(
    editor: Client, tick: dict[str, str], *, is_saved: bool
) -> None:
    form = {"form": "on", "name": "x", "enforcement": "enforce", "rule-0-does": "set"}
    form |= {"then-0-rule": "0", "then-0-on": "label", "then-0-key": "a", "then-0-value": "b"}
    answer = send(editor, do="save", **form, **tick)
    assert (answer.status_code == 302) is is_saved
    assert MetadataPolicy.objects.exists() is is_saved
    if not is_saved:
        (rule,) = rules_of(answer)
        assert rule["does"].errors


def test_yaml_counts_where_the_form_has_only_its_empty_rule(editor: Client) -> None:
    begun = {"form": "on", "name": "", "enforcement": "enforce", "rule-0-does": "refuse"}
    begun |= {"if-0-rule": "0", "if-0-on": "label", "if-0-key": "", "if-0-is": "DoesNotExist"}
    answer = send(editor, do="save", yaml=RULES, confirm="team", **begun)
    assert answer.status_code == 302
    assert MetadataPolicy.objects.get().name == "all"


@pytest.mark.parametrize(
    ("word", "code"), [("", 422), ("prod", 422), ("Team", 422), ("team", 302), (" team ", 302)]
)
def test_what_refuses_everything_is_saved_by_name_alone(
    editor: Client, word: str, code: int
) -> None:
    answer = send(editor, do="save", yaml=RULES, confirm=word)
    assert answer.status_code == code
    assert MetadataPolicy.objects.exists() is (code == 302)
    if code == 422:
        assert "refuses every object" in answer.context["dangers"][0]


@pytest.mark.parametrize("mode", ["audit", "warn"])
def test_what_only_tells_is_saved_without_it(editor: Client, mode: str) -> None:
    annotated = RULES.replace(
        "namespace: team}",
        f"namespace: team, annotations: {{policy.gatehouse.dev/enforcement: {mode}}}}}",
    )
    assert send(editor, do="save", yaml=annotated).status_code == 302


def test_warnings_come_with_each_check(editor: Client) -> None:
    hints = send(editor, yaml=RULES).context["hints"]
    assert [hint.lint.code for hint in hints] == [LintCode.REFUSES_EVERYTHING]
    state = editor.get(NEW).context["state"]
    script = {"HTTP_HX_REQUEST": "true"}
    part: Any = editor.post(NEW, {"shown": state.shown, "yaml": RULES}, **script)
    assert len(part.context["hints"]) == 1


def test_a_draft_is_kept_for_its_author_and_offered(editor: Client) -> None:
    send(editor, yaml=RULES)
    page = editor.get(NEW)
    assert page.context["kept_draft"].text == RULES
    assert page.context["state"].draft.text != RULES
    assert editor.get(f"{NEW}?draft").context["state"].draft.text == RULES
    other = Client()
    other.force_login(people.person("other", "editor", cluster="prod", namespace="team"))
    assert other.get(NEW).context["kept_draft"] is None
    assert editor.post(NEW, {"do": "forget"}).status_code == 302
    assert not KeptDraft.objects.exists()


def test_a_draft_goes_when_it_is_saved_or_says_what_is_stored(editor: Client) -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    page = f"{PLACE}/limitranges/lr/"
    stored = editor.get(page).context["state"].draft.text
    typed = stored.replace('"2"', '"3"').replace("cpu: 2", "cpu: 3")
    assert typed != stored
    for last in ({"yaml": stored}, {"yaml": typed, "do": "save", "seen": "1"}):
        send(editor, page, yaml=typed)
        assert KeptDraft.objects.count() == 1
        send(editor, page, **last)
        assert not KeptDraft.objects.exists()
    assert LimitRange.objects.get().revision == 2


def test_a_draft_of_an_old_version_meets_what_was_saved_since(editor: Client) -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    page = f"{PLACE}/limitranges/lr/"
    stored = editor.get(page).context["state"].draft.text
    typed = stored.replace('"2"', '"3"').replace("cpu: 2", "cpu: 3")
    send(editor, page, yaml=typed, seen="1")
    factories.limit_range({"type": "Container", "max": {"cpu": "5"}})
    continued = editor.get(f"{page}?draft")
    assert 'name="seen" value="1"' in continued.content.decode()
    state = continued.context["state"]
    sent = {"seen": "1", "shown": state.shown, "yaml": state.draft.text, "reason": "r"}
    assert editor.post(page, {**sent, "do": "save"}).status_code == 409
    assert str(LimitRange.objects.get().rows.get().max) == "5"


@pytest.mark.long
def test_so_many_drafts_are_kept(editor: Client) -> None:
    for number in range(23):
        factories.limit_range({"type": "Container", "max": {"cpu": "2"}}, name=f"r{number}")
        page = f"{PLACE}/limitranges/r{number}/"
        text = editor.get(page).context["state"].draft.text
        send(editor, page, yaml=text.replace('"2"', '"3"').replace("cpu: 2", "cpu: 3"))
    names = set(KeptDraft.objects.values_list("name", flat=True))
    assert names == {f"r{number}" for number in range(3, 23)}
