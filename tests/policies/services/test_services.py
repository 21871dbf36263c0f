"""Writes: on record, counted, guarded against stale copies, and undone exactly."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from policies import services, snapshot
from policies.models import (
    Charge,
    Cluster,
    LimitRange,
    Namespace,
    PolicyRevision,
    PriorityClass,
    ResourceQuota,
    WebhookCredential,
)
from policies.models.edits import AppendOnlyError
from policies.snapshot import Authentication
from tests import factories

pytestmark = pytest.mark.django_db
POD = {"type": "Pod", "max": {"cpu": "1"}}


def history(kind: str = "LimitRange") -> list[tuple[int, str]]:
    rows = PolicyRevision.objects.filter(kind=kind).order_by("id")
    return list(rows.values_list("number", "action"))


def test_a_write_is_on_record_and_counted() -> None:
    stored = factories.limit_range(POD)
    revision = PolicyRevision.objects.get(kind="LimitRange")
    assert (revision.user, revision.reason, revision.action) == ("tester", "test", "create")
    assert (revision.before, revision.after) == (None, stored.to_manifest())
    assert str(revision) == "LimitRange prod/team/lr #1"
    assert Cluster.objects.get().policy_revision == revision.cluster_revision


def test_the_same_again_changes_nothing() -> None:
    factories.limit_range(POD)
    count = Cluster.objects.get().policy_revision
    document = factories.manifest("LimitRange", {"limits": [POD]}, name="lr")
    assert not factories.saved(document).changed
    assert Cluster.objects.get().policy_revision == count


def test_an_update_keeps_both_sides() -> None:
    factories.limit_range(POD)
    stored = factories.limit_range()
    revision = PolicyRevision.objects.filter(kind="LimitRange").latest("id")
    assert (revision.number, stored.revision) == (2, 2)
    assert revision.before["spec"]["limits"] == [POD]
    assert revision.after["spec"]["limits"] == []


def test_a_stale_write_is_refused() -> None:
    stored = factories.limit_range(POD)
    factories.limit_range()
    stored.draft_rows("rows", [])
    with pytest.raises(services.StaleRevisionError) as caught:
        services.save_policy(policy=stored, user="x", expected_revision=1)
    assert (caught.value.expected, caught.value.found) == (1, 2)


def test_a_refused_write_leaves_nothing() -> None:
    with pytest.raises(ValidationError):
        factories.limit_range({"type": "nope"})
    assert history() == []
    assert not LimitRange.objects.exists()


def test_names_never_change() -> None:
    stored = factories.limit_range(POD)
    stored.name = "other"
    with pytest.raises(ValidationError) as caught:
        services.save_policy(policy=stored, user="x")
    assert caught.value.error_dict["name"][0].code == "immutable"


def test_a_deleted_policy_comes_back_exactly() -> None:
    stored = factories.limit_range(POD, labels={"a": "b"})
    before, uid = stored.to_manifest(), stored.uid
    deleted = services.delete_policy(policy=stored, user="x")
    assert deleted.revision is not None
    restored = services.restore_revision(revision=deleted.revision, user="x").instance
    assert (restored.to_manifest(), restored.uid, restored.revision) == (before, uid, 3)
    assert history() == [(1, "create"), (2, "delete"), (3, "restore")]


def test_an_old_state_comes_back() -> None:
    factories.limit_range(POD)
    factories.limit_range()
    first = PolicyRevision.objects.get(kind="LimitRange", number=1)
    saved = services.restore_revision(revision=first, user="x", reason="sorry")
    assert saved.instance.to_manifest() == first.after
    assert saved.revision is not None
    assert saved.revision.reason == "sorry"


def test_a_restored_quota_takes_up_its_charges() -> None:
    quota = factories.resource_quota({"pods": "5"}, used={"pods": "3"})
    deleted = services.delete_policy(policy=quota, user="x")
    assert not Charge.objects.filter(quota__name="rq").exists()
    assert deleted.revision is not None
    restored = services.restore_revision(revision=deleted.revision, user="x").instance
    assert restored.usage.used == {"pods": "3"}


WRONG_NAMES: list[Any] = [
    ["Team"], ["a b"], [""], ["a", "a"], ["kube-system"], ["gatehouse-canary"], [7], "team",
    {"a": "b"}, None,
    [f"team-{number}" for number in range(101)],
]  # fmt: skip


@pytest.mark.parametrize("names", WRONG_NAMES)
def test_excluded_namespaces_are_different_names(names: Any) -> None:
    cluster = factories.cluster()
    cluster.excluded_namespaces = names
    with pytest.raises(ValidationError) as refused:
        services.save_cluster(cluster=cluster, user="x")
    assert list(refused.value.message_dict) == ["excluded_namespaces"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["Team"], '"Team" is no name of a namespace: write at most 63 lowercase letters'),
        (["ci", "ci"], '"ci" is named twice: name it once'),
        (["gatehouse-canary"], '"gatehouse-canary" cannot be named: the canaries there show'),
        (["kube-system"], '"kube-system" cannot be named: the webhooks leave it out already'),
        ([str(number) for number in range(101)], "must be a list of at most 100 names"),
    ],
)
def test_a_wrong_name_is_quoted_with_what_to_write_instead(names: list[str], words: str) -> None:
    cluster = factories.cluster()
    with pytest.raises(ValidationError) as refused:
        services.set_excluded_namespaces(cluster=cluster, names=names, user="x")
    [message] = refused.value.message_dict["excluded_namespaces"]
    assert message.startswith(words)
    assert Cluster.objects.get().excluded_namespaces == []


def test_excluded_namespaces_are_on_record_and_read_again() -> None:
    cluster = factories.cluster()
    services.set_excluded_namespaces(cluster=cluster, names=["b", "a"], user="x", reason="ci")
    stored = Cluster.objects.get()
    assert stored.to_manifest()["spec"]["excludedNamespaces"] == ["a", "b"]
    assert Cluster().read_manifest(stored.to_manifest()).excluded_namespaces == ["a", "b"]
    revision = PolicyRevision.objects.latest("pk")
    assert (revision.reason, revision.after["spec"]["excludedNamespaces"]) == ("ci", ["a", "b"])


@pytest.mark.parametrize("kind", ["Cluster", "Namespace"])
def test_what_is_not_restored_says_so(kind: str) -> None:
    factories.namespace()
    with pytest.raises(ValidationError) as caught:
        services.restore_revision(revision=PolicyRevision.objects.get(kind=kind), user="x")
    assert caught.value.code == "not_restorable"


def test_a_revision_of_a_gone_cluster_is_not_restored() -> None:
    factories.limit_range(POD)
    services.delete_cluster(cluster=factories.cluster(), user="x")
    with pytest.raises(ValidationError) as caught:
        services.restore_revision(
            revision=PolicyRevision.objects.get(kind="LimitRange", number=1), user="x"
        )
    assert caught.value.code == "unknown_cluster"


def test_deleting_a_cluster_records_each_object() -> None:
    factories.limit_range(POD)
    factories.resource_quota({"pods": "5"}, used={"pods": "3"})
    factories.priority_class()
    services.delete_cluster(cluster=factories.cluster(), user="x")
    assert not Cluster.objects.exists()
    deleted = PolicyRevision.objects.filter(action="delete").values_list("kind", flat=True)
    assert set(deleted) == {"LimitRange", "ResourceQuota", "PriorityClass", "Namespace", "Cluster"}


def test_deleting_a_cluster_ends_its_limited_resources_on_record() -> None:
    factories.limited_resources({"apiGroup": "apps", "resource": "deployments"})
    services.delete_cluster(cluster=factories.cluster(), user="x")
    last = PolicyRevision.objects.filter(name="limitedResources").latest("number")
    assert last.after["limitedResources"] == []


def test_revisions_of_a_later_cluster_count_on_behind_those_of_an_earlier_one() -> None:
    factories.limited_resources({"apiGroup": "apps", "resource": "deployments"})
    services.delete_cluster(cluster=factories.cluster(), user="x")
    end = PolicyRevision.objects.get(kind="Cluster", action="delete")
    later = Cluster(name=end.cluster)
    services.save_cluster(cluster=later, user="x")
    start = PolicyRevision.objects.filter(kind="Cluster", action="create").latest("id")
    later.refresh_from_db()
    assert start.cluster_revision == later.policy_revision == end.cluster_revision + 1


def test_limited_resources_are_replaced_recorded_and_restored() -> None:
    entry = {
        "resource": "pods",
        "matchScopes": [{"scopeName": "PriorityClass", "operator": "Exists"}],
    }
    factories.limited_resources(entry, {"apiGroup": "apps", "resource": "deployments"})
    factories.limited_resources(entry, {"apiGroup": "apps", "resource": "deployments"})
    factories.limited_resources()
    first, last = PolicyRevision.objects.filter(kind="ResourceQuotaConfiguration").order_by("id")
    assert last.before["limitedResources"][0] == entry
    services.restore_revision(revision=first, user="x")
    rows = factories.cluster().limited_resources.all()
    assert [str(row) for row in rows] == ["pods", "deployments.apps"]


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([{"apiGroup": "apps"}], id="no resource"),
        pytest.param([{"resource": 5}], id="wrong type"),
    ],
)
def test_bad_limited_resources_are_refused(entries: list[dict[str, object]]) -> None:
    with pytest.raises(ValidationError):
        factories.limited_resources(*entries)


def test_limited_resources_come_as_a_manifest() -> None:
    document = {"kind": "ResourceQuotaConfiguration", "limitedResources": [{"resource": "pods"}]}
    assert factories.saved(document).changed
    assert not factories.saved(document).changed


def test_namespace_keeps_metadata_and_phase() -> None:
    document = {
        "kind": "Namespace",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "status": {"phase": "Terminating"},
    }
    stored = factories.apply(document)
    assert str(stored) == "prod/n"
    assert stored.to_manifest() == {"apiVersion": "v1", **document}


def test_cluster_comes_back_from_its_manifest() -> None:
    cluster = Cluster(name="c", description="d", external_id="e")
    services.save_cluster(cluster=cluster, user="x")
    cluster.description = "changed"
    services.save_cluster(cluster=cluster, user="x", expected_revision=1)
    assert Cluster.objects.get().description == "changed"
    assert Cluster().read_manifest(cluster.to_manifest()).description == "changed"


def test_priority_class_is_saved_once() -> None:
    factories.priority_class()
    factories.priority_class()
    assert PriorityClass.objects.count() == 1
    assert history("PriorityClass") == [(1, "create")]


def test_lints_come_with_the_write() -> None:
    selector = {
        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["x"]}]
    }
    document = factories.manifest(
        "ResourceQuota", {"hard": {"pods": "1"}, "scopeSelector": selector}
    )
    assert [lint.code for lint in factories.saved(document).lints] == ["UnknownPriorityClass"]


def test_revisions_are_append_only_in_django() -> None:
    factories.cluster()
    revision = PolicyRevision.objects.of(cluster="prod", kind="Cluster", name="prod").get()
    for attempt in (
        revision.save,
        revision.delete,
        PolicyRevision.objects.all().delete,
        lambda: PolicyRevision.objects.update(user="me"),
    ):
        with pytest.raises(AppendOnlyError):
            attempt()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE policies_policyrevision SET reason = 'x'",
        "DELETE FROM policies_policyrevision",
    ],
)
def test_revisions_are_append_only_in_the_database(statement: str) -> None:
    factories.cluster()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute(statement)


def test_credentials_know_their_cluster() -> None:
    secret, other = factories.webhook_secret(), factories.webhook_secret("other")
    assert snapshot.authenticate("prod", secret) is Authentication.OK
    assert snapshot.authenticate("prod", other) is Authentication.OTHER_CLUSTER
    assert snapshot.authenticate("prod", "guess") is Authentication.UNKNOWN
    assert secret not in str(list(WebhookCredential.objects.values()))


def test_credentials_rotate_with_overlap() -> None:
    old, new = factories.webhook_secret(), factories.webhook_secret()
    credential = WebhookCredential.objects.order_by("id").first()
    assert snapshot.authenticate("prod", old) is snapshot.authenticate("prod", new)
    assert credential is not None
    services.revoke_webhook_credential(credential=credential, user="x")
    services.revoke_webhook_credential(credential=credential, user="x")
    assert snapshot.authenticate("prod", old) is Authentication.UNKNOWN
    assert snapshot.authenticate("prod", new) is Authentication.OK
    assert [action for _, action in history("WebhookCredential")] == ["issue", "issue", "revoke"]


def test_credentials_expire() -> None:
    later = timezone.now() + timedelta(days=1)
    secret = factories.webhook_secret(expires=later)
    assert snapshot.authenticate("prod", secret) is Authentication.OK
    WebhookCredential.objects.update(
        created=later - timedelta(days=5), expires=later - timedelta(days=2)
    )
    assert snapshot.authenticate("prod", secret) is Authentication.UNKNOWN


def test_credentials_are_not_issued_for_the_past() -> None:
    with pytest.raises(ValidationError):
        factories.webhook_secret(expires=timezone.now())


def test_digests_depend_on_the_pepper(settings: object) -> None:
    plain = WebhookCredential.digest_of("s")
    settings.GATEHOUSE_KEY_PEPPER = "pepper"  # type: ignore[attr-defined]  # a fixture without types
    assert WebhookCredential.digest_of("s") != plain


def test_deleting_a_namespace_deletes_its_policies() -> None:
    factories.limit_range(POD)
    services.delete_namespace(namespace=Namespace.objects.get(), user="x")
    assert not LimitRange.objects.exists()
    assert not ResourceQuota.objects.exists()


def counted() -> list[tuple[str, int]]:
    rows = PolicyRevision.objects.order_by("id")
    return list(rows.values_list("kind", "cluster_revision"))


def test_one_transaction_counts_once() -> None:
    factories.limit_range(POD)
    assert counted() == [("Cluster", 1), ("Namespace", 2), ("LimitRange", 2)]
    assert Cluster.objects.get().policy_revision == 2


def test_writes_inside_a_write_join_it() -> None:
    cluster = factories.cluster()
    with services.policy_write(cluster):
        factories.limit_range(POD)
        factories.webhook_secret()
        assert Cluster.objects.get().policy_revision == 1
    assert {number for _, number in counted()} == {1, 2}
    assert Cluster.objects.get().policy_revision == 2


def test_a_write_that_changes_nothing_counts_nothing() -> None:
    cluster = factories.cluster()
    with services.policy_write(cluster):
        factories.cluster()
    assert Cluster.objects.get().policy_revision == 1


def test_a_failed_write_does_not_stay_open() -> None:
    cluster = factories.cluster()
    with pytest.raises(ValidationError), services.policy_write(cluster):
        factories.limit_range({"type": "nope"})
    factories.limit_range(POD)
    assert Cluster.objects.get().policy_revision == 2


def test_a_write_to_a_gone_cluster_is_refused() -> None:
    cluster = factories.cluster()
    gone = Cluster.objects.get()
    services.delete_cluster(cluster=cluster, user="x")
    with pytest.raises(Cluster.DoesNotExist):
        services.save_namespace(namespace=Namespace(cluster=gone, name="n"), user="x")


def test_a_limit_of_a_cluster_is_kept() -> None:
    document = {"metadata": {"name": "c"}, "spec": {"unconfirmedLimit": 5}}
    services.save_cluster(cluster=Cluster().read_manifest(document), user="x")
    stored = Cluster.objects.get()
    assert (stored.unconfirmed_limit, stored.to_manifest()["spec"]) == (5, document["spec"])
    stored.unconfirmed_limit = 0
    services.save_cluster(cluster=stored, user="x")
    assert Cluster.objects.get().to_manifest()["spec"] == {}


def test_the_version_of_a_cluster_is_kept_and_on_record() -> None:
    document = {"metadata": {"name": "c"}, "spec": {"kubernetesVersion": "1.37"}}
    services.save_cluster(cluster=Cluster().read_manifest(document), user="x")
    stored = Cluster.objects.get()
    assert (stored.kubernetes_version, stored.to_manifest()["spec"]) == ("1.37", document["spec"])
    services.set_kubernetes_version(cluster=stored, version="", user="x", reason="not ours")
    assert stored.kubernetes_version == ""
    assert PolicyRevision.objects.latest("cluster_revision").reason == "not ours"


def test_the_failure_policy_of_a_cluster_is_kept_and_on_record() -> None:
    document = {"metadata": {"name": "c"}, "spec": {"failurePolicy": "Ignore"}}
    services.save_cluster(cluster=Cluster().read_manifest(document), user="x")
    stored = Cluster.objects.get()
    assert (stored.failure_policy, stored.to_manifest()["spec"]) == ("Ignore", document["spec"])
    stored.description = "not saved yet"
    services.set_failure_policy(cluster=stored, failure_policy="Fail", user="x", reason="strict")
    assert (stored.failure_policy, stored.description, stored.to_manifest()["spec"]) == (
        "Fail",
        "",
        {},
    )
    revision = PolicyRevision.objects.latest("cluster_revision")
    assert (revision.reason, revision.before["spec"], revision.after["spec"]) == (
        "strict",
        document["spec"],
        {},
    )


@pytest.mark.parametrize("word", ["fail", "Open", ""])
def test_a_failure_policy_that_is_not_known_is_refused_at_its_field(word: str) -> None:
    cluster = factories.cluster()
    with pytest.raises(ValidationError) as refused:
        services.set_failure_policy(cluster=cluster, failure_policy=word, user="x")
    assert list(refused.value.message_dict) == ["failure_policy"]
    assert Cluster.objects.get().failure_policy == "Fail"


def test_the_database_knows_the_failure_policies_too() -> None:
    factories.cluster()
    with pytest.raises(IntegrityError), transaction.atomic():
        Cluster.objects.update(failure_policy="Open")


@pytest.mark.parametrize("version", ["1.38", "1.36.3", "v1.36", "latest"])
def test_a_version_that_is_not_known_is_refused_at_its_field(version: str) -> None:
    with pytest.raises(ValidationError) as refused:
        services.save_cluster(cluster=Cluster(name="c", kubernetes_version=version), user="x")
    assert list(refused.value.message_dict) == ["kubernetes_version"]
    assert not Cluster.objects.exists()
