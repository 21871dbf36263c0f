"""What a policy in audit mode would have denied, and its promotion."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from policies.models import LimitRange
from tests import factories
from tests.people import person
from tests.running_pods import asks, on_record

pytestmark = pytest.mark.django_db
PAGE = "/clusters/prod/namespaces/team/limitranges/lr/"
MODE = "policy.gatehouse.dev/enforcement"


def audited(maximum: str, mode: str = "audit") -> None:
    annotations = {} if mode == "enforce" else {MODE: mode}
    factories.limit_range({"type": "Container", "max": {"cpu": maximum}}, annotations=annotations)


@pytest.fixture
def editor() -> Client:
    factories.namespace()
    client = Client()
    client.force_login(person("ed", "editor", cluster="prod", namespace="team"))
    return client


def test_findings_are_counted_since_the_mode_began_over_later_revisions(editor: Client) -> None:
    audited("2", "warn")
    on_record(asks("before"))
    audited("2")
    audited("1")
    on_record(asks("since"))
    observed = editor.get(PAGE).context["observed"]
    assert (observed.mode, observed.would_deny, observed.is_cut) == ("audit", 1, False)


def test_enforcing_policy_has_nothing_to_promote(editor: Client) -> None:
    audited("2", "enforce")
    assert editor.get(PAGE).context["observed"] is None


def test_promotion_asks_first_and_is_saved_with_its_reason(editor: Client) -> None:
    audited("2")
    state = editor.get(PAGE).context["state"]
    sent = {"seen": "1", "shown": state.shown, "yaml": state.draft.text}
    asked: Any = editor.post(PAGE, {**sent, "do": "promote"}, headers={"HX-Request": "true"})
    assert asked.context["is_asked"]
    assert LimitRange.objects.get().enforcement == "audit"
    promoted = asked.context["state"]
    sent |= {"shown": promoted.shown, "yaml": promoted.draft.text, "reason": "seen enough"}
    assert editor.post(PAGE, {**sent, "do": "save"}).status_code == 302
    assert LimitRange.objects.get().enforcement == "enforce"
