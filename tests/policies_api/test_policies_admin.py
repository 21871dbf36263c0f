"""The back office: rows are saved with their policy, errors land in their cells."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from policies import services
from policies.models import (
    Charge,
    Cluster,
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


def rows(prefix: str, *forms: dict[str, Any], initial: int = 0) -> dict[str, Any]:
    known = {f"{prefix}-TOTAL_FORMS": len(forms), f"{prefix}-INITIAL_FORMS": initial}
    cells = {
        f"{prefix}-{i}-{name}": value
        for i, form in enumerate(forms)
        for name, value in form.items()
    }
    return {**known, **cells}


def head(**more: Any) -> dict[str, Any]:
    namespace = factories.namespace()
    return {
        "namespace": namespace.pk,
        "name": "x",
        "labels": "{}",
        "annotations": "{}",
        "enforcement": "enforce",
        **more,
    }


CPU = {"position": 0, "type": "Container", "resource": "cpu", "max": "1.50"}


def post(admin: Client, path: str, data: dict[str, Any]) -> Any:
    """Post a form; returns None when it was accepted, else the page's context."""
    answer = admin.post(path, data)
    return None if answer.status_code == 302 else answer.context


def test_a_limit_range_is_made_with_its_rows(admin: Client) -> None:
    empty = {"position": 0, "type": "Container", "resource": ""}
    data = {**head(reason="because"), **rows("rows", CPU, empty)}
    assert post(admin, address(LimitRange), data) is None
    stored = LimitRange.objects.get()
    item = {"type": "Container", "max": {"cpu": "1.50"}}
    assert stored.to_manifest()["spec"]["limits"] == [item]
    assert PolicyRevision.objects.get(kind="LimitRange").reason == "because"


def test_an_error_lands_in_its_cell(admin: Client) -> None:
    memory = {**CPU, "resource": "memory", "max": "1", "min": "2"}
    data = {**head(), **rows("rows", CPU, memory)}
    context = post(admin, address(LimitRange), data)
    [formset] = context["inline_admin_formsets"]
    assert formset.formset.errors[0] == {}
    assert "min" in formset.formset.errors[1]
    assert not LimitRange.objects.exists()


@pytest.mark.parametrize(
    ("row", "column"),
    [
        pytest.param({**CPU, "max": "1 Gi"}, "max", id="quantity"),
        pytest.param({**CPU, "resource": "foo"}, "resource", id="resource"),
        pytest.param({**CPU, "type": "x"}, "type", id="type"),
    ],
)
def test_other_errors_land_in_their_cells(admin: Client, row: Any, column: str) -> None:
    context = post(admin, address(LimitRange), {**head(), **rows("rows", row)})
    assert column in context["inline_admin_formsets"][0].formset.errors[0]


def test_rows_of_one_item_have_one_type(admin: Client) -> None:
    pod = {**CPU, "type": "Pod", "resource": "memory"}
    assert post(admin, address(LimitRange), {**head(), **rows("rows", CPU, pod)})


def test_an_error_of_the_policy_itself_is_shown_there(admin: Client) -> None:
    context = post(admin, address(LimitRange), {**head(name="A B"), **rows("rows", CPU)})
    assert "name" in context["adminform"].form.errors


def test_a_limit_range_is_changed_and_renumbered(admin: Client) -> None:
    stored = factories.limit_range({"type": "Pod", "max": {"cpu": "1", "memory": "1Gi"}})
    cpu, memory = stored.rows.all()
    forms = [
        {"id": cpu.pk, "position": 0, "type": "Pod", "resource": "cpu", "max": "2"},
        {"id": memory.pk, "position": 0, "type": "Pod", "resource": "memory", "DELETE": "on"},
    ]
    data = {
        **head(expected_revision=1),
        **rows("rows", *[{"limit_range": stored.pk, **form} for form in forms], initial=2),
    }
    assert post(admin, address(LimitRange, stored.pk, page="change"), data) is None
    assert LimitRange.objects.get().to_manifest()["spec"]["limits"] == [
        {"type": "Pod", "max": {"cpu": "2"}}
    ]


def test_a_stale_form_is_refused(admin: Client) -> None:
    stored = factories.limit_range({"type": "Pod"})
    data = {**head(expected_revision=7), **rows("rows")}
    context = post(admin, address(LimitRange, stored.pk, page="change"), data)
    assert context["adminform"].form.non_field_errors().data[0].code == "stale"


def test_metadata_rules_keep_their_order(admin: Client) -> None:
    rules = [
        {
            "position": 5,
            "label_selector": "{}",
            "reject": "on",
            "updated_labels": "{}",
            "updated_annotations": "{}",
        },
        {"position": 2, "updated_labels": '{"a": "b"}', "updated_annotations": "{}"},
    ]
    assert post(admin, address(MetadataPolicy), {**head(), **rows("rules", *rules)}) is None
    found = MetadataPolicy.objects.get().to_manifest()["spec"]["rules"]
    assert [rule["policyAction"]["reject"] for rule in found] == [False, True]
    assert found[1]["policyPredicate"] == {"labelSelector": {}}


def test_a_bad_rule_is_told_in_its_cell(admin: Client) -> None:
    rule = {
        "position": 0,
        "label_selector": '{"matchLabels": {"a b": "c"}}',
        "updated_labels": "{}",
        "updated_annotations": "{}",
    }
    context = post(admin, address(MetadataPolicy), {**head(), **rows("rules", rule)})
    assert "label_selector" in context["inline_admin_formsets"][0].formset.errors[0]


def quota(**more: Any) -> dict[str, Any]:
    return {**head(scopes="[]", **more), **rows("rows", {"resource": "pods", "hard": "5"})}


def test_a_quota_shows_hints_and_errors(admin: Client) -> None:
    scope = {"position": 0, "scope_name": "PriorityClass", "operator": "In", "values": '["x"]'}
    data = {**quota(), **rows("scope_rows", scope)}
    answer = admin.post(address(ResourceQuota), data, follow=True)
    assert "the cluster has no PriorityClass x" in answer.content.decode()
    bad = {**quota(name="y"), **rows("scope_rows", {**scope, "values": "null"})}
    context = post(admin, address(ResourceQuota), bad)
    assert context["inline_admin_formsets"][1].formset.non_form_errors()


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


def test_a_cluster_is_saved_with_its_limited_resources(admin: Client) -> None:
    data = {"name": "c", "description": "d", "limited_resources": '[{"resource": "pods"}]'}
    assert post(admin, address(Cluster), data) is None
    assert Cluster.objects.get().limited_resources.get().resource == "pods"
    context = post(admin, address(Cluster), {**data, "name": "d", "limited_resources": "[{}]"})
    assert "limited_resources" in context["adminform"].form.errors


def test_namespaces_and_classes_are_saved(admin: Client) -> None:
    cluster = factories.cluster()
    common = {"cluster": cluster.pk, "labels": "{}", "annotations": "{}"}
    data = {**common, "name": "n", "phase": "Active"}
    assert post(admin, address(Namespace), data) is None
    assert post(admin, address(PriorityClass), {**common, "name": "p", "value": "5"}) is None
    assert (Namespace.objects.get().revision, PriorityClass.objects.get().revision) == (1, 1)


def test_deletions_are_on_record(admin: Client) -> None:
    factories.limit_range()
    factories.priority_class()
    for model in (LimitRange, PriorityClass, Namespace, Cluster):
        first = model.objects.first()
        assert first is not None
        admin.post(address(model, first.pk, page="delete"), {"post": "yes"})
        assert not model.objects.exists()
    assert PolicyRevision.objects.filter(action="delete").count() == 4


def act(admin: Client, model: Any, action: str, *ids: int) -> str:
    data = {"action": action, "_selected_action": ids, "post": "yes"}
    return admin.post(address(model, page="changelist"), data, follow=True).content.decode()


def test_selected_policies_are_deleted_through_services(admin: Client) -> None:
    stored = factories.limit_range()
    act(admin, LimitRange, "delete_selected", stored.pk)
    assert PolicyRevision.objects.filter(kind="LimitRange", action="delete").exists()


def test_a_charge_is_released(admin: Client) -> None:
    stored = factories.resource_quota({"pods": "5"}, used={"pods": "1"})
    assert "1 charges were released" in act(admin, Charge, "release", Charge.objects.get().pk)
    assert QuotaUsage.objects.get(quota=stored).used == {"pods": "0"}


def test_revisions_are_restored(admin: Client) -> None:
    stored = factories.limit_range()
    deleted = services.delete_policy(policy=stored, user="x").revision
    assert deleted is not None
    assert "was restored" in act(admin, PolicyRevision, "restore", deleted.pk)
    other = PolicyRevision.objects.get(kind="Cluster").pk
    assert "is not restored" in act(admin, PolicyRevision, "restore", other)


def test_credentials_are_issued_and_revoked(admin: Client) -> None:
    data = {"cluster": factories.cluster().pk, "label": "l", "expires_0": "", "expires_1": ""}
    answer = admin.post(address(WebhookCredential), data, follow=True)
    assert "The secret, shown only now" in answer.content.decode()
    act(admin, WebhookCredential, "revoke", WebhookCredential.objects.get().pk)
    assert WebhookCredential.objects.get().revoked


def test_history_is_not_changed_by_hand(admin: Client) -> None:
    factories.cluster()
    assert admin.get(address(PolicyRevision)).status_code == 403
    assert admin.get(address(Charge)).status_code == 403
