"""A namespace in one view: figures, what needs attention, policies with denials, who may what."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from admission.models import AuditEvent, Tally, decision_id, partitions
from policies import services
from policies.models import Cluster, KeptTest
from tests import factories, people
from tests.kept_tests import kept
from tests.running_pods import asks, running

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
PLACE = "/clusters/prod/namespaces/team/"
QUOTA = {"kind": "ResourceQuota", "namespace": "team", "name": "rq"}


@pytest.fixture
def reader() -> Client:
    client = Client()
    client.force_login(people.person())
    return client


def shown(client: Client, tab: str = "") -> Any:
    response: Any = client.get(f"{PLACE}{tab}")
    assert response.status_code == 200
    return response.context


def decided(hours: float, verdict: str = "denied", **fields: Any) -> AuditEvent:
    moment = timezone.now() - timedelta(hours=hours)
    partitions.ensure(moment)
    violation = {"reason": "ExceededQuota", "message": "no room", "policy": QUOTA}
    given = {
        "cluster": "prod",
        "namespace": "team",
        "name": "web-1",
        "message": "pods web-1 is forbidden: no room",
        "reasons": " ExceededQuota ",
        "violations": [violation],
        **fields,
    }
    return AuditEvent.objects.create(
        id=decision_id.encode(int(moment.timestamp() * 1000), int(hours * 10)),
        duration_us=1,
        phase="validate",
        request_uid="u",
        kind="Pod",
        verdict=verdict,
        code=403,
        **given,
    )


def test_figures_are_of_the_last_day_against_the_day_before(reader: Client) -> None:
    factories.namespace()
    for hours in (1, 2, 30):
        decided(hours)
    decided(3, "allowed", reasons="", violations=[])
    decided(4, "allowed", violations=[], observed=[{"reason": "Rejected", "policy": QUOTA}])
    decided(23.99)
    expected = (5, 3, 1, 2)
    for _ in ("from decisions", "from tallies"):
        figures = shown(reader)["day"]
        found = (figures.total, figures.denied, figures.would_deny, figures.change)
        assert found == expected
        decided(5, cluster="other")
        decided(6, namespace="other")
        Tally.objects.bring_up_to_date(now=timezone.now(), until=time.monotonic() + 60)


def test_a_stuck_owner_leads_to_the_reason_and_to_the_limit(reader: Client) -> None:
    factories.resource_quota({"pods": "9"})
    event = decided(1)
    (line,) = shown(reader)["needs"]
    assert (line.title, line.words) == ("web is stuck", "no room")
    why, limit = line.ways
    assert (event.pk in why.address, limit.address) == (True, "/quotas/prod/team/rq/")


def test_a_full_quota_needs_attention_and_another_does_not(reader: Client) -> None:
    factories.resource_quota({"pods": "2"}, name="full")
    factories.resource_quota({"pods": "9"}, name="roomy")
    running(asks("a", "1"), asks("b", "1"))
    context = shown(reader)
    assert [line.title for line in context["needs"]] == ["Quota full is full"]
    assert context["pods"] == 2
    assert {quota.name: quota.look for quota in context["quotas"]} == {"full": "full", "roomy": ""}


def test_an_audited_policy_with_hits_waits_for_its_promotion(reader: Client) -> None:
    rule = {"policyPredicate": {}, "policyAction": {"reject": True}}
    audit = {"policy.gatehouse.dev/enforcement": "audit"}
    factories.metadata_policy(rule, annotations=audit)
    policy = {"kind": "MetadataPolicy", "namespace": "team", "name": "mp"}
    decided(1, "allowed", violations=[], observed=[{"reason": "Rejected", "policy": policy}])
    context = shown(reader)
    (row,) = context["rows"]
    assert (row.enforcement, row.hits.would_deny, row.hits.denied) == ("audit", 1, 0)
    (line,) = context["needs"]
    assert (line.look, line.ways[-1].address) == ("would-deny", row.address)


def test_denials_are_grouped_by_owner_and_reason(reader: Client) -> None:
    factories.namespace()
    for hours in (1, 2, 3):
        decided(hours)
    decided(4, name="other", violations=[])
    found = [(each.owner, each.number) for each in shown(reader)["denials"]]
    assert found == [("web", 3), ("other", 1)]


def test_the_tightest_bound_and_the_first_default_count(reader: Client) -> None:
    factories.limit_range(
        {"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "4"}}, name="a"
    )
    factories.limit_range(
        {"type": "Container", "default": {"cpu": "2"}, "max": {"cpu": "3"}}, name="b"
    )
    (row,) = shown(reader)["values"]
    assert (row.resource, row.limit, row.most, row.least) == ("cpu", "1", "3", "")


def test_people_are_named_by_what_they_may_change(reader: Client) -> None:
    factories.namespace()
    people.person("ed", "editor", cluster="prod", namespace="team")
    people.person("elsewhere", "editor", cluster="prod", namespace="other")
    found = shown(reader)["people"]
    assert (found.named, found.viewers) == ([("ed", "editor")], 1)


def test_pods_at_risk_come_with_a_line_of_their_own(reader: Client) -> None:
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"), asks("small", "1"))
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    restarts = shown(reader, "risks/")["restarts"]
    assert (restarts.refused, [row.owner for row in restarts.rows]) == (1, ["web"])


def test_new_policies_are_offered_to_those_who_may_write(reader: Client) -> None:
    factories.namespace()
    assert shown(reader)["begin"] == ""
    editor = Client()
    editor.force_login(people.person("ed", "editor", cluster="prod", namespace="team"))
    assert shown(editor)["begin"] == "/policies/new/?cluster=prod&namespace=team"


@pytest.mark.parametrize("tab", ["", "policies/", "simulate/", "live/"])
def test_questions_do_not_grow_with_policies(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries, tab: str
) -> None:
    for number in range(6):
        factories.resource_quota({"pods": "3"}, name=f"q{number}")
        factories.limit_range({"type": "Pod", "max": {"cpu": "1"}}, name=f"l{number}")
    with django_assert_max_num_queries(36):
        shown(reader, tab)


@pytest.mark.parametrize("tab", ["", "policies/", "simulate/", "live/"])
def test_every_tab_of_an_excluded_namespace_says_who_enforces(reader: Client, tab: str) -> None:
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    words = "The webhooks of prod leave this namespace out: "
    assert words not in reader.get(f"{PLACE}{tab}").content.decode()
    cluster = factories.cluster()
    services.set_excluded_namespaces(cluster=cluster, names=["team"], user="x")
    assert f"{words}nobody enforces its policies." in reader.get(f"{PLACE}{tab}").content.decode()
    Cluster.objects.update(authority="native")
    page = reader.get(f"{PLACE}{tab}").content.decode()
    assert f"{words}the portal enforces nothing here; the API server" in page


@pytest.mark.parametrize(
    "page",
    [
        f"{PLACE}limitranges/lr/",
        f"{PLACE}metadatapolicies/new",
        f"{PLACE}resourcequotas/rq/",
        "/quotas/prod/team/rq/",
        "/quotas/?open=prod/team/rq",
    ],
)
def test_page_of_a_policy_in_an_excluded_namespace_says_so(page: str) -> None:
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    factories.resource_quota({"pods": "3"})
    editor = people.signed_in(people.person("ed", "editor", cluster="prod", namespace="team"))
    words = "The webhooks of prod leave this namespace out: nobody enforces its policies."
    assert words not in editor.get(page).content.decode()
    services.set_excluded_namespaces(cluster=factories.cluster(), names=["team"], user="x")
    told = editor.get(page).content.decode()
    assert words in told
    assert "/clusters/prod/enforcement/" not in told  # not for who sees a namespace alone
    admin = people.signed_in(people.person("ada", "admin"))
    assert "/clusters/prod/enforcement/?q=team" in admin.get(page).content.decode()


def test_the_portal_enforces_no_kind_in_an_excluded_namespace(reader: Client) -> None:
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    pages = (PLACE, f"{PLACE}policies/")
    figure, kind = "<strong>portal</strong>", "Enforced by the portal."
    figures, policies = (reader.get(address).content.decode() for address in pages)
    assert (figures.count(figure), policies.count(kind)) == (1, 4)
    cluster = factories.cluster()
    services.set_excluded_namespaces(cluster=cluster, names=["team"], user="x")
    figures, policies = (reader.get(address).content.decode() for address in pages)
    assert (figures.count(figure), policies.count(kind)) == (0, 0)
    assert "<strong>nobody</strong>" in figures
    assert policies.count("Enforced by nobody") == 4


def test_red_tests_need_attention_and_are_named(reader: Client) -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    factories.apply(kept("green"))
    assert shown(reader)["needs"] == []
    factories.apply(kept("red", expect={"verdict": "allow"}))
    [need] = shown(reader)["needs"]
    red = KeptTest.objects.get(name="red")
    assert (need.title, need.words) == ("1 kept test is red", "red")
    assert [way.address for way in need.ways] == [f"/tests/{red.pk}/"]
    for name in ("b", "c", "d"):
        factories.apply(kept(name, expect={"verdict": "allow"}))
    [need] = shown(reader)["needs"]
    assert (need.title, need.words) == ("4 kept tests are red", "b, c, d and 1 more")
    assert need.ways[0].address == "/tests/?cluster=prod&q=team"


def test_tests_of_a_namespace_cost_one_query(
    reader: Client,
) -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    with CaptureQueriesContext(connection) as few:
        shown(reader)
    for number in range(10):
        factories.apply(kept(f"t{number}"))
    with CaptureQueriesContext(connection) as many:
        shown(reader)
    assert len(many) <= len(few)
