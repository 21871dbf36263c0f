"""The back office: policies and history are read, clusters and credentials written."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from policies.models import (
    Charge,
    Cluster,
    LedgerEntry,
    LimitRange,
    MetadataPolicy,
    Namespace,
    PolicyRevision,
    PriorityClass,
    QuotaUsage,
    ResourceQuota,
    WebhookCredential,
)
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="x"))
    return client


def address(model: Any, *args: Any, page: str = "add") -> str:
    return reverse(f"admin:policies_{model._meta.model_name}_{page}", args=args)


def post(admin: Client, path: str, data: dict[str, Any]) -> Any:
    """Post a form; returns None when it was accepted, else the page's context."""
    answer = admin.post(path, data)
    return None if answer.status_code == 302 else answer.context


@pytest.fixture(params=[LimitRange, MetadataPolicy, ResourceQuota, PriorityClass])
def policy(request: pytest.FixtureRequest) -> Any:
    factories.resource_quota({"pods": "5"}, used={"pods": "1"})
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    factories.metadata_policy({"policyAction": {"reject": True}})
    factories.priority_class()
    return request.param.objects.get()


def test_policies_are_only_read(admin: Client, policy: Any) -> None:
    model, before = type(policy), PolicyRevision.objects.count()
    page = address(model, policy.pk, page="change")
    assert admin.get(page).status_code == 200
    assert admin.get(address(model)).status_code == 403
    assert admin.post(address(model), {"name": "new"}).status_code == 403
    assert admin.post(page, {"name": "new"}).status_code == 403
    gone = address(model, policy.pk, page="delete")
    assert admin.post(gone, {"post": "yes"}).status_code == 403
    act(admin, model, "delete_selected", policy.pk)
    assert model.objects.get().name == policy.name
    assert PolicyRevision.objects.count() == before


def test_a_policy_leads_to_its_editor(admin: Client, policy: Any) -> None:
    page = admin.get(address(type(policy), page="changelist")).content.decode()
    links = re.findall(r'href="(/clusters/prod/namespaces/team/[^"]+)"', page)
    assert [admin.get(link).status_code for link in links] == [200] * len(links)
    assert bool(links) == (not isinstance(policy, PriorityClass))


def test_pages_open(admin: Client) -> None:
    factories.resource_quota({"pods": "5"}, used={"pods": "1"})
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    factories.metadata_policy({"policyAction": {"reject": True}})
    factories.priority_class()
    factories.webhook_secret()
    models = (
        Cluster,
        Namespace,
        LimitRange,
        MetadataPolicy,
        ResourceQuota,
        PriorityClass,
        Charge,
        PolicyRevision,
        WebhookCredential,
    )
    for model in models:
        assert admin.get(address(model, page="changelist")).status_code == 200
        first = model.objects.first()
        assert first is not None
        assert admin.get(address(model, first.pk, page="change")).status_code == 200


def test_clusters_and_namespaces_are_saved(admin: Client) -> None:
    data = {"name": "c", "description": "d"}
    assert post(admin, address(Cluster), data) is None
    cluster = Cluster.objects.get()
    given = {"cluster": cluster.pk, "name": "n", "phase": "Active"}
    given |= {"labels": "{}", "annotations": "{}"}
    assert post(admin, address(Namespace), given) is None
    assert (cluster.description, Namespace.objects.get().revision) == ("d", 1)


def test_deletions_are_on_record(admin: Client) -> None:
    factories.namespace()
    for model in (Namespace, Cluster):
        first = model.objects.first()
        assert first is not None
        admin.post(address(model, first.pk, page="delete"), {"post": "yes"})
        assert not model.objects.exists()
    assert PolicyRevision.objects.filter(action="delete").count() == 2


@pytest.mark.parametrize("model", [Namespace, Cluster])
def test_what_has_policies_is_not_deleted_here(admin: Client, model: Any) -> None:
    factories.limit_range()
    first = model.objects.get()
    admin.post(address(model, first.pk, page="delete"), {"post": "yes"})
    act(admin, model, "delete_selected", first.pk)
    assert model.objects.exists()
    assert LimitRange.objects.exists()


def act(admin: Client, model: Any, action: str, *ids: int) -> str:
    data = {"action": action, "_selected_action": ids, "post": "yes"}
    return admin.post(address(model, page="changelist"), data, follow=True).content.decode()


def test_a_charge_is_released(admin: Client) -> None:
    stored = factories.resource_quota({"pods": "5"}, used={"pods": "1"})
    assert "1 charge released" in act(admin, Charge, "release", Charge.objects.get().pk)
    assert QuotaUsage.objects.get(quota=stored).used == {"pods": "0"}
    entry = LedgerEntry.objects.latest("id")
    assert (entry.action, entry.cause, entry.reference) == ("release", "person", "root")


def test_credentials_are_issued_and_revoked(admin: Client) -> None:
    data = {"cluster": factories.cluster().pk, "label": "l", "expires_0": "", "expires_1": ""}
    answer = admin.post(address(WebhookCredential), data, follow=True)
    assert "The secret, shown only once" in answer.content.decode()
    act(admin, WebhookCredential, "revoke", WebhookCredential.objects.get().pk)
    assert WebhookCredential.objects.get().revoked


def test_history_is_not_changed_by_hand(admin: Client) -> None:
    factories.cluster()
    assert admin.get(address(PolicyRevision)).status_code == 403
    assert admin.get(address(Charge)).status_code == 403
