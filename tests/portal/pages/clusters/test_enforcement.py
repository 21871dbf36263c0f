"""The page that says who enforces what, and the preview of ownership."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone

from portal.pages import lists
from sync.models import ClusterConnection, SyncedObject, WebhookHealth
from tests import factories, people
from tests.sync.enforcement import world

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
PAGE = "/clusters/prod/enforcement/"
RANGE = {"type": "Pod", "max": {"cpu": "1"}}


@pytest.fixture
def viewer(client: Client, db: None) -> Client:
    client.force_login(people.person("viewer"))
    return client


@pytest.fixture
def admin(client: Client, db: None) -> Client:
    client.force_login(people.person("admin", "admin"))
    return client


def text(who: Client, address: str) -> str:
    response = who.get(address)
    assert response.status_code == 200
    return response.content.decode()


def names(page: str) -> list[str]:
    return re.findall(r"namespaces/([-a-z0-9]+)/\"", page)


def test_each_kind_has_its_enforcer(viewer: Client) -> None:
    cluster = world.complete()
    factories.limit_range(RANGE)
    factories.metadata_policy({"policyPredicate": {}, "policyAction": {"reject": True}})
    world.native(cluster, ("LimitRange", "team", "lr"))
    page = text(viewer, PAGE)
    assert page.count("native plugin</span>") == 1
    assert page.count('<span class="mark ok">portal</span>') == 1
    assert "Nothing is missing in the whole cluster" in page
    assert "some namespaces below lack something" not in page
    assert "Cannot be seen." in page
    WebhookHealth.objects.update(canary_refused=False)
    page = text(viewer, PAGE)
    assert page.count('<span class="mark failing-open">nobody</span>') == 1
    assert "cluster_manifests prod --ca-file ca.crt" in page


def test_what_is_missing_leads_to_what_mends_it(admin: Client) -> None:
    cluster = world.complete()
    factories.limit_range(RANGE)
    factories.limit_range(RANGE, namespace="aaa")
    world.native(cluster, ("LimitRange", "aaa", "lr"))
    page = text(admin, PAGE)
    assert names(page) == ["team", "aaa"]
    assert 'href="/clusters/prod/ownership/?namespace=team"' in page
    assert "cluster_ownership prod take --namespace team" in page
    assert "some namespaces below lack something" in page
    ClusterConnection.objects.all().delete()
    assert 'href="/clusters/-/connect/?name=prod"' in text(admin, PAGE)
    # A page that they may not use is no offer; the command stands there for those who may.
    admin.force_login(people.person("other"))
    page = text(admin, PAGE)
    assert "/ownership/?" not in page
    assert "/connect/" not in page
    assert "cluster_ownership prod take --namespace team" in page


def test_namespaces_are_searched_and_paged(
    viewer: Client,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    monkeypatch.setattr(lists, "USUAL_ROWS", 2)
    for name in ("a-1", "a-2", "a-3", "b-1"):
        factories.limit_range(RANGE, namespace=name)
    assert names(text(viewer, PAGE)) == ["a-1", "a-2"]
    assert names(text(viewer, f"{PAGE}?page=2")) == ["a-3", "b-1"]
    assert names(text(viewer, f"{PAGE}?q=b-")) == ["b-1"]
    assert "No namespace matches" in text(viewer, f"{PAGE}?q=zzz")
    with django_assert_max_num_queries(25):
        text(viewer, PAGE)


def test_a_cluster_without_policies_says_what_to_do(viewer: Client) -> None:
    factories.cluster()
    page = text(viewer, PAGE)
    assert "There is nothing to enforce yet" in page
    assert "connect_cluster prod --kubeconfig FILE" in page


def test_who_sees_a_part_sees_no_such_page() -> None:
    factories.cluster()
    part = Client()
    part.force_login(people.person("p", "viewer", cluster="prod", namespace="team"))
    assert part.get(PAGE).status_code == 404


def test_ownership_is_previewed_where_it_is_given(viewer: Client) -> None:
    factories.limit_range(RANGE)
    address = "/clusters/prod/ownership/"
    assert "Choose a scope" in text(viewer, address)
    page = text(viewer, f"{address}?preview=1&namespace=team")
    assert "would be created in the cluster" in page
    assert "1 of 1 object would change." in page
    assert "None of 0 objects" in text(viewer, f"{address}?preview=1&namespace=nowhere")
    now = timezone.now()
    SyncedObject.objects.create(
        cluster=factories.cluster(),
        kind="LimitRange",
        namespace="<b>",
        name="x",
        since=now,
        seen=now,
        state="unowned",
    )
    page = text(viewer, f"{address}?preview=1&namespace=%3Cb%3E")
    assert "<b>" not in page
