"""Rows of the trace: rule, value and result in short, the revision that set them, links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies import services
from tests import factories, people
from tests.builders import container, pod

if TYPE_CHECKING:
    from django.test import Client

    from admission.models import AuditEvent
    from portal.pages.decisions.reasons.trace import TraceRow
    from tests.portal.pages.decisions.conftest import Decided

pytestmark = pytest.mark.django_db
AUDITS = {"policy.gatehouse.dev/enforcement": "audit"}
GREEDY = pod(container(requests={"cpu": "3"}, limits={"cpu": "4"}), namespace="team")


def rows_of(client: Client, event: AuditEvent) -> list[TraceRow]:
    if "_auth_user_id" not in client.session:
        client.force_login(people.person("reader"))
    rows: list[TraceRow] = client.get(f"/decisions/{event.pk}").context["trace"]
    return [row for row in rows if row.kind]


def test_the_denying_row_is_open_with_its_numbers(client: Client, decided: Decided) -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "8"}})
    factories.resource_quota({"requests.cpu": "4"}, name="a")
    factories.resource_quota({"requests.cpu": "2", "pods": "5"}, name="b")
    limits, wide, narrow = rows_of(client, decided(GREEDY))
    assert (limits.rule, limits.result, limits.is_open) == ("max of Container", "passed", False)
    assert (wide.result, wide.is_open) == ("passed", False)
    assert [amount.percent for amount in wide.amounts] == [75]
    assert (narrow.rule, narrow.value) == ("requests.cpu", "0 + 3 > 2")
    assert (narrow.result, narrow.is_open) == ("denied", True)
    assert [(each.after, each.is_exceeded) for each in narrow.amounts] == [("3", True)]


def test_a_broken_bound_is_named_with_the_revision_that_set_it(
    client: Client, decided: Decided
) -> None:
    for most in ("9", "2"):
        factories.limit_range({"type": "Container", "max": {"cpu": most}})
    (row,) = rows_of(client, decided(GREEDY))
    assert (row.rule, row.result) == ("max cpu of Container", "denied")
    assert row.set_by
    assert row.set_by.revision.number == 2
    assert row.set_by.words == ["spec.limits[0].max.cpu was changed from 9 to 2"]
    page = client.get(row.set_by.link)
    assert page.status_code == 200
    assert client.get(row.link).status_code == 200


def test_a_rule_that_audits_would_deny(client: Client, decided: Decided) -> None:
    factories.metadata_policy({"PolicyAction": {"reject": True}}, annotations=AUDITS)
    (row,) = rows_of(client, decided(GREEDY, phase="mutate"))
    assert (row.rule, row.result, row.is_open) == ("rule 0", "would-deny", True)


def test_what_was_set_and_what_did_not_match_are_short(client: Client, decided: Decided) -> None:
    factories.limit_range({"type": "Container", "default": {"memory": "1Gi"}})
    factories.metadata_policy(
        {
            "policyPredicate": {
                "labelSelector": {"matchExpressions": [{"key": "no", "operator": "Exists"}]}
            },
            "policyAction": {"updatedLabels": {"seen": "yes"}},
        }
    )
    defaults, policy = rows_of(client, decided(GREEDY, phase="mutate"))
    assert (defaults.rule, defaults.result) == ("defaults", "mutated")
    assert not defaults.value.startswith("LimitRanger")
    assert (policy.result, policy.is_idle) == ("not-matched", True)


def test_a_policy_that_was_deleted_leads_to_its_revisions(client: Client, decided: Decided) -> None:
    stored = factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    event = decided(GREEDY)
    kept: dict[str, Any] = {row.kind: row.link for row in rows_of(client, event)}
    services.delete_policy(policy=stored, user="ada", reason="test")
    (row,) = rows_of(client, event)
    assert row.link == f"{kept['LimitRange']}revisions/"
    assert client.get(row.link).status_code == 200
