"""The manifests of a cluster: webhooks that fail as they must, few permissions; later changes."""

from __future__ import annotations

import io
import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from engine.policy import Authority
from engine.request import GroupVersionResource
from engine.resource_quota.evaluators import CLAIMS, PODS, evaluator_of
from policies.models import Cluster, PolicyRevision, WebhookCredential
from policies.validators import CANARY_NAMESPACE
from sync.connect.permissions import manifest_grants
from sync.installation.configurations import left_out
from sync.installation.manifests import (
    WebhookClientConfig,
    differences,
    key_in,
    manifests,
    webhooks,
)
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://gatehouse.example.com"


def built(
    *, covers: bool = False, place: str = "", **asking: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    where = {"portal_namespace": place} if place else {}
    cluster = Cluster(name="prod", covers_kube_system=covers, **where)
    mutating, validating = webhooks(
        cluster, WebhookClientConfig(portal_url=URL, key="k/1", **asking)
    )
    return mutating, validating


def test_mutating_fails_open_and_is_called_again() -> None:
    webhook = built()[0]["webhooks"][0]
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["reinvocationPolicy"] == "IfNeeded"


def test_validating_fails_closed() -> None:
    assert built()[1]["webhooks"][0]["failurePolicy"] == "Fail"


@pytest.mark.parametrize("choice", Cluster.FailurePolicy.values)
def test_failure_policy_of_the_cluster_is_that_of_the_validating_webhook_alone(choice: str) -> None:
    cluster = Cluster(name="prod", covers_kube_system=True, failure_policy=choice)
    found = {
        webhook["name"]: webhook["failurePolicy"]
        for configuration in webhooks(cluster)
        for webhook in configuration["webhooks"]
    }
    assert found == {
        "mutate.gatehouse.dev": "Ignore",
        "mutate-kube-system.gatehouse.dev": "Ignore",
        "validate.gatehouse.dev": choice,
        "validate-kube-system.gatehouse.dev": "Ignore",
        "hint.gatehouse.dev": "Ignore",
    }


@pytest.mark.parametrize("index", [0, 1], ids=["mutating", "validating"])
def test_webhooks_are_quick_and_clean(index: int) -> None:
    for webhook in built(covers=True)[index]["webhooks"]:
        assert webhook["timeoutSeconds"] <= 5
        assert webhook["sideEffects"] == "NoneOnDryRun"
        assert 0 < len(webhook["matchConditions"]) <= 64


def test_namespaces_are_left_out_by_name() -> None:
    mutating, validating = built(place="portal")
    assert [len(one["webhooks"]) for one in (mutating, validating)] == [1, 2]
    for webhook in (*mutating["webhooks"], *validating["webhooks"]):
        (entry,) = webhook["namespaceSelector"]["matchExpressions"]
        assert entry["key"] == "kubernetes.io/metadata.name"
        assert entry["operator"] == "NotIn"
        assert entry["values"] == ["kube-system", "kube-node-lease", "portal"]


def test_kube_system_is_put_in_failing_open() -> None:
    for configuration in built(covers=True):
        ours = configuration["webhooks"][1]
        assert ours["failurePolicy"] == "Ignore"
        assert ours["namespaceSelector"]["matchExpressions"][0]["operator"] == "In"
        assert ours["namespaceSelector"]["matchExpressions"][0]["values"] == ["kube-system"]


def hint(**asking: Any) -> dict[str, Any]:
    """The webhook of hints."""
    (found,) = [one for one in built(**asking)[1]["webhooks"] if one["name"].startswith("hint.")]
    return found


def test_hints_never_block_a_write() -> None:
    assert hint()["failurePolicy"] == "Ignore"
    assert hint()["timeoutSeconds"] == 1
    assert hint()["clientConfig"] == {"url": f"{URL}/admission/prod/k%2F1/hint"}


def test_hints_are_of_namespaces_and_of_deleted_policies() -> None:
    found = {
        (resource, rule["scope"]): rule["operations"]
        for rule in hint()["rules"]
        for resource in rule["resources"]
    }
    assert found == {
        ("namespaces", "Cluster"): ["CREATE", "UPDATE", "DELETE"],
        ("limitranges", "Namespaced"): ["DELETE"],
        ("resourcequotas", "Namespaced"): ["DELETE"],
        ("metadatapolicies", "Namespaced"): ["DELETE"],
    }


def test_only_hints_get_deletions_and_namespaces() -> None:
    for configuration in built(covers=True):
        for webhook in configuration["webhooks"]:
            if webhook["name"] != "hint.gatehouse.dev":
                (rule,) = webhook["rules"]
                assert (rule["operations"], rule["scope"]) == (["CREATE", "UPDATE"], "Namespaced")


def test_kube_system_that_is_put_in_gets_hints() -> None:
    (out,) = hint()["namespaceSelector"]["matchExpressions"]
    (covered,) = hint(covers=True)["namespaceSelector"]["matchExpressions"]
    assert out["values"] == ["kube-system", "kube-node-lease", "gatehouse"]
    assert covered["values"] == ["kube-node-lease", "gatehouse"]


@pytest.mark.parametrize("resource", [PODS, CLAIMS, "services"])
def test_all_that_quotas_count_is_sent(resource: str) -> None:
    (rule,) = built()[1]["webhooks"][0]["rules"]
    parts = evaluator_of(GroupVersionResource(resource=resource)).updates - {""}
    assert {f"{resource}/{part}" for part in parts} <= set(rule["resources"])
    assert "*" in rule["resources"]
    assert {"pods/resize", "pods/ephemeralcontainers"} <= set(rule["resources"])


def test_quota_status_is_not_sent() -> None:
    for configuration in built():
        (rule,) = configuration["webhooks"][0]["rules"]
        assert not {"*/*", "resourcequotas/*", "resourcequotas/status"} & set(rule["resources"])


def test_address_carries_cluster_and_credential() -> None:
    assert built()[1]["webhooks"][0]["clientConfig"] == {
        "url": f"{URL}/admission/prod/k%2F1/validate"
    }
    assert key_in(built()[1]) == "k/1"


def test_portal_may_do_no_more_than_it_asks_for() -> None:
    found = manifests(Cluster(name="prod"), WebhookClientConfig(portal_url=URL))
    rules = [
        rule for one in found if one["kind"] in {"Role", "ClusterRole"} for rule in one["rules"]
    ]
    granted = {
        (g, r, v)
        for rule in rules
        for g in rule["apiGroups"]
        for r in rule["resources"]
        for v in rule["verbs"]
    }
    asked = {
        (g.group, g.resource, v) for g in manifest_grants(Cluster(name="prod")) for v in g.verbs
    }
    assert granted == asked
    words = json.dumps(rules)
    assert "*" not in words
    assert "secrets" not in words
    (role,) = [one for one in found if one["kind"] == "Role"]
    assert role["metadata"]["namespace"] == CANARY_NAMESPACE
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]


def test_webhooks_come_last() -> None:
    kinds = [one["kind"] for one in manifests(Cluster(name="prod"), WebhookClientConfig())]
    assert [kind.endswith("WebhookConfiguration") for kind in kinds[-3:]] == [False, True, True]


@pytest.mark.parametrize("covers", [False, True])
def test_what_was_installed_does_not_differ(*, covers: bool) -> None:
    cluster = Cluster(name="prod", covers_kube_system=covers, portal_namespace="elsewhere")
    for live in built(covers=covers, place="elsewhere", ca=b"pem"):
        assert differences(cluster, live) == []


@pytest.mark.parametrize("covers", [False, True])
def test_excluded_namespaces_are_in_no_selector_of_a_webhook(*, covers: bool) -> None:
    names = ["ci", "scratch"]
    cluster = Cluster(name="prod", covers_kube_system=covers, excluded_namespaces=names)
    assert set(left_out(cluster)) >= set(names)
    for installed in webhooks(cluster):
        for webhook in installed["webhooks"]:
            [selector] = webhook["namespaceSelector"]["matchExpressions"]
            if selector["operator"] == "NotIn":
                assert selector["values"][-2:] == names
            else:
                assert selector["values"] == ["kube-system"]
        assert differences(cluster, installed) == []
        assert differences(Cluster(name="prod", covers_kube_system=covers), installed)


def test_a_name_that_is_left_out_anyway_is_excluded_once() -> None:
    cluster = Cluster(name="prod", excluded_namespaces=["gatehouse", "kube-node-lease"])
    assert left_out(cluster) == ("kube-system", "kube-node-lease", "gatehouse")


def test_any_other_namespace_that_is_left_out_is_noticed() -> None:
    for live in built(place="team"):
        assert differences(Cluster(name="prod"), live)


CHANGES: dict[str, dict[str, Any]] = {
    "open": {"failurePolicy": "Ignore"},
    "slow": {"timeoutSeconds": 30},
    "narrow": {"rules": []},
    "conditions": {"matchConditions": []},
    "label": {"objectSelector": {"matchLabels": {"a": "b"}}},
    "namespaces": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
    "address": {"clientConfig": {"url": "https://evil.example.com/"}},
    "other-cluster": {"clientConfig": {"url": f"{URL}/admission/test/KEY/validate"}},
    "service": {"clientConfig": {"service": {"name": "a", "namespace": "b"}}},
    "name": {"name": "other.gatehouse.dev"},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_change_is_noticed(change: dict[str, Any]) -> None:
    live = deepcopy(built()[1])
    live["webhooks"][0] |= change
    assert differences(Cluster(name="prod"), live)


@pytest.mark.parametrize(
    ("wanted", "live", "found"),
    [
        ("Ignore", "Ignore", []),
        ("Ignore", "Fail", ["validate.gatehouse.dev: failurePolicy is Fail, not Ignore"]),
        ("Fail", "Ignore", ["validate.gatehouse.dev: failurePolicy is Ignore, not Fail"]),
    ],
)
def test_another_failure_policy_than_the_clusters_is_named(
    wanted: str, live: str, found: list[str]
) -> None:
    installed = webhooks(Cluster(name="prod", failure_policy=live))[1]
    assert differences(Cluster(name="prod", failure_policy=wanted), installed) == found


def test_hints_that_are_missing_or_may_block_are_noticed() -> None:
    older = deepcopy(built()[1])
    del older["webhooks"][1]
    assert differences(Cluster(name="prod"), older) == ["hint.gatehouse.dev is missing"]
    closed = deepcopy(built()[1])
    closed["webhooks"][1] |= {"failurePolicy": "Fail"}
    assert differences(Cluster(name="prod"), closed) == [
        "hint.gatehouse.dev: failurePolicy is Fail, not Ignore"
    ]


def test_kube_system_that_should_be_in_is_missed() -> None:
    assert differences(Cluster(name="prod", covers_kube_system=True), built()[1]) != []
    assert differences(Cluster(name="prod"), built(covers=True)[1]) != []


def printed(*words: str) -> str:
    out = io.StringIO()
    call_command("cluster_manifests", "prod", "--portal-url", URL, *words, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_command_prints_with_a_new_credential(capsys: pytest.CaptureFixture[str]) -> None:
    factories.cluster()
    found = list(yaml.safe_load_all(printed()))
    digest = WebhookCredential.digest_of(key_in(found[-1]))
    assert WebhookCredential.objects.get().digest == digest
    assert json.loads(printed("-o", "json"))["items"][0]["kind"] == "Namespace"


@pytest.mark.django_db
def test_command_takes_a_credential_that_is_there(tmp_path: Path) -> None:
    secret = factories.webhook_secret()
    file = tmp_path / "key"
    file.write_text(secret + "\n")
    found = list(yaml.safe_load_all(printed("--key-file", str(file), "--token-secret")))
    assert key_in(found[-1]) == key_in(found[-2]) == secret
    assert WebhookCredential.objects.count() == 1
    assert [one["type"] for one in found if one["kind"] == "Secret"] == [
        "kubernetes.io/service-account-token"
    ]


USAGES = {
    "http": ["--portal-url", "http://gatehouse.example.com"],
    "no-authority": ["--ca-file", "/nowhere"],
    "no-credential": ["--key-file", "/dev/null"],
}


@pytest.mark.django_db
@pytest.mark.parametrize("words", USAGES.values(), ids=USAGES.keys())
def test_command_refuses_what_no_api_server_takes(words: list[str]) -> None:
    factories.cluster()
    with pytest.raises(CommandError) as caught:
        printed(*words)
    assert caught.value.returncode == 2


@pytest.mark.django_db
def test_command_cannot_apply_to_a_cluster_that_is_not_connected() -> None:
    factories.cluster()
    with pytest.raises(CommandError) as caught:
        printed("--apply")
    assert caught.value.returncode == 1


@pytest.mark.django_db
def test_command_makes_a_cluster_whose_own_plugins_enforce() -> None:
    printed("--create")
    assert Cluster.objects.get().authority == Authority.NATIVE


@pytest.mark.django_db
def test_portals_namespace_is_kept_and_put_on_record() -> None:
    factories.cluster()
    printed("--portal-namespace", "elsewhere")
    known = Cluster.objects.get()
    assert known.portal_namespace == "elsewhere"
    assert known.to_manifest()["spec"]["portalNamespace"] == "elsewhere"
    again = list(yaml.safe_load_all(printed("--token-secret")))
    places = {one["metadata"].get("namespace") for one in again if one["kind"] in ACCOUNTS}
    assert places == {"elsewhere"}
    assert all(differences(known, live) == [] for live in again[-2:])
    assert PolicyRevision.objects.filter(kind="Cluster").count() == 2


@pytest.mark.django_db
def test_failure_policy_is_kept_and_put_on_record() -> None:
    printed("--create", "--failure-policy", "Ignore")
    known = Cluster.objects.get()
    assert (known.failure_policy, known.authority) == ("Ignore", Authority.NATIVE)
    again = list(yaml.safe_load_all(printed()))
    assert again[-1]["webhooks"][0]["failurePolicy"] == "Ignore"
    assert all(differences(known, live) == [] for live in again[-2:])
    printed("--failure-policy", "Fail", "--portal-namespace", "elsewhere")
    known.refresh_from_db()
    assert (known.failure_policy, known.portal_namespace) == ("Fail", "elsewhere")
    assert PolicyRevision.objects.filter(kind="Cluster").count() == 4


ACCOUNTS = ("ServiceAccount", "Secret")


@pytest.mark.django_db
def test_namespace_that_cannot_be_is_refused() -> None:
    factories.cluster()
    with pytest.raises(CommandError) as caught:
        printed("--portal-namespace", "Not A Name")
    assert caught.value.returncode == 2
    assert Cluster.objects.get().portal_namespace == "gatehouse"
