"""Resources that only quotas count: listed by metadata, and granted only while counted."""

from __future__ import annotations

import io
from typing import Any
from uuid import uuid4

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.utils import timezone

from policies import services
from policies.models import Charge, LedgerPass
from sync.connect import permissions, probe
from sync.connect.permissions import BUILT_IN, GRANTS
from sync.errors import BusyError, ForbiddenError, NotFoundError
from sync.models import ClusterAlert, SyncedObject
from tests import factories
from tests.builders import request
from tests.charges import admit
from tests.sync.passes.test_ledger_pass import age, look, used
from tests.sync.pretended import Manifest, PretendedCluster, native_quota

pytestmark = pytest.mark.django_db
DEPLOYMENTS = "count/deployments.apps"
SECRETS = ("secrets", "team")
FORBIDDEN = ForbiddenError("secrets is forbidden", code=403)


@pytest.fixture
def there() -> PretendedCluster:
    return PretendedCluster()


def bare(name: str, namespace: str = "team") -> Manifest:
    return {"metadata": {"name": name, "namespace": namespace, "uid": str(uuid4())}}


def secret(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", **bare(name)}


def let_in(*secrets: Manifest) -> None:
    for each in secrets:
        assert admit(request(each, namespace="team", resource="secrets")) == [True]


def alarms() -> list[str]:
    return list(ClusterAlert.objects.filter(resolved=None).values_list("subject", flat=True))


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        (DEPLOYMENTS, "deployments.apps"),
        ("count/widgets.example.com", "widgets.example.com"),
        ("count/configmaps", "configmaps"),
        ("configmaps", "configmaps"),
        ("secrets", "secrets"),
        ("replicationcontrollers", "replicationcontrollers"),
        ("resourcequotas", "resourcequotas"),
    ],
)
def test_whatever_a_quota_counts_is_listed(there: PretendedCluster, name: str, listed: str) -> None:
    factories.resource_quota({name: "9"})
    gone = there.put(bare("a"), listed)
    there.put(bare("b"), listed)
    there.put(bare("c", namespace="other"), listed)
    assert look(there) == {"added": 2}
    assert used(name) == "2"
    there.take(gone, listed)
    assert look(there) == {"released": 1}
    assert used(name) == "1"
    assert set(there.listed) == {"ResourceQuota", listed}


@pytest.mark.parametrize("name", ["count/events", "count/", "count/a*b", "count/pods/log"])
def test_what_no_quota_counts_or_nobody_could_ask_for_is_not(name: str) -> None:
    assert permissions.where_counted([("team", [name])]) == {}


def test_claims_for_devices_are_listed_with_their_contents(there: PretendedCluster) -> None:
    name = "gpu.deviceclass.resource.k8s.io/devices"
    factories.resource_quota({name: "9"})
    exactly = {"deviceClassName": "gpu", "count": 2}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    there.put({**bare("a"), "spec": spec}, "resourceclaims.resource.k8s.io")
    look(there)
    assert used(name) == "2"


def test_secrets_are_listed_in_the_namespaces_that_count_them(there: PretendedCluster) -> None:
    factories.resource_quota({"secrets": "9"})
    factories.resource_quota({"pods": "9"}, name="other", namespace="other")
    there.put(bare("a", namespace="other"), "secrets")
    there.put(bare("a"), "secrets")
    asked: list[str] = []
    plain = there.list_resource
    there.list_resource = lambda *a, **k: asked.append(a[2]) or plain(*a, **k)  # type: ignore[method-assign,assignment,func-returns-value]
    look(there)
    assert asked == ["team"]
    assert used("secrets") == "1"


def test_forbidden_resource_is_reported_and_keeps_its_charges(there: PretendedCluster) -> None:
    factories.resource_quota({"secrets": "9", "pods": "9"}, used={"secrets": "5"})
    there.failing["secrets"] = FORBIDDEN
    let_in(secret("a"))
    age()
    assert look(there) == {}
    assert used("secrets") == "6"
    assert alarms() == ["secrets"]
    message = ClusterAlert.objects.get().message
    assert "secrets cannot be listed: not counted in quota team/rq; " in message
    assert "manage.py cluster_manifests prod" in message


def test_alarm_names_the_quotas_that_are_not_counted(there: PretendedCluster) -> None:
    for number in range(7):
        factories.resource_quota({"secrets": "9"}, name=f"rq-{number}")
    there.failing["secrets"] = FORBIDDEN
    look(there)
    message = ClusterAlert.objects.get().message
    assert "quotas team/rq-0, team/rq-1, team/rq-2, team/rq-3, team/rq-4 and 2 more" in message


def test_custom_resources_are_listed_where_they_may_be(there: PretendedCluster) -> None:
    factories.resource_quota({"count/a.example.com": "9"})
    there.put(bare("a"), "a.example.com")
    asked: list[str] = []
    plain = there.list_resource

    def limited(group: str, resource: str, namespace: str, **words: bool) -> Any:
        asked.append(namespace)
        if not namespace:
            raise FORBIDDEN
        return plain(group, resource, namespace, **words)

    there.list_resource = limited  # type: ignore[method-assign,assignment]
    look(there)
    assert (asked, used("count/a.example.com"), alarms()) == (["", "team"], "1", [])


@pytest.mark.parametrize("error", [BusyError("x", code=503), NotFoundError("no", code=404)])
def test_trouble_with_one_resource_hides_no_other(there: PretendedCluster, error: Any) -> None:
    factories.resource_quota({"count/a.example.com": "9", "secrets": "9"})
    there.put(bare("a"), "secrets")
    there.failing["a.example.com"] = error
    assert look(there) == {"added": 1}
    assert LedgerPass.objects.get(resource="a.example.com").problem
    # What is not served cannot be there: that is no alarm.
    assert alarms() == ([] if isinstance(error, NotFoundError) else ["a.example.com"])


def test_alarm_ends_when_no_quota_counts_it_any_more(there: PretendedCluster) -> None:
    factories.resource_quota({"secrets": "9"})
    there.failing["secrets"] = FORBIDDEN
    look(there)
    factories.resource_quota({"pods": "9"})
    look(there)
    assert alarms() == []
    assert not LedgerPass.objects.filter(resource="secrets").exists()


# Where the cluster's own figures count


def native(there: PretendedCluster, count: str) -> None:
    """Have the cluster enforce, count so many Secrets, and not let us list them."""
    factories.resource_quota({"secrets": "9"})
    there.objects["ResourceQuota"].clear()
    there.put(native_quota({"secrets": "9"}, {"secrets": count}), "ResourceQuota")
    there.failing["secrets"] = FORBIDDEN
    cluster = factories.cluster()
    services.note_native(cluster=cluster, native=[("ResourceQuota", "team", "rq")], user="sync")
    services.set_authority(cluster=cluster, authority="native", user="root")


def test_figure_of_the_cluster_takes_the_place_of_what_is_past_its_lease(
    there: PretendedCluster,
) -> None:
    native(there, "3")
    let_in(secret("old"), secret("new"))
    age(object_name="old")
    assert look(there) == {"released": 1}
    assert used("secrets") == "4"
    native(there, "1")
    look(there)
    assert used("secrets") == "2"
    assert Charge.objects.get(object_name="new").state == "reserved"


def test_what_can_be_listed_again_is_charged_itself(there: PretendedCluster) -> None:
    native(there, "2")
    look(there)
    there.failing.clear()
    for name in "ab":
        there.put(bare(name), "secrets")
    assert look(there) == {"added": 2}
    assert used("secrets") == "2"
    assert look(there) == {}


def test_figure_that_has_not_changed_is_not_written_again(there: PretendedCluster) -> None:
    native(there, "2")
    look(there)
    before = Charge.objects.get().updated
    look(there)
    assert Charge.objects.get().updated == before


# Rights


def printed(*words: str) -> tuple[str, list[Manifest]]:
    factories.cluster()
    out, err = io.StringIO(), io.StringIO()
    url = "https://gatehouse.example.com"
    call_command("cluster_manifests", "prod", "--portal-url", url, *words, stdout=out, stderr=err)
    return out.getvalue() + err.getvalue(), list(yaml.safe_load_all(out.getvalue()))


def rights(manifests: list[Manifest], kind: str, name: str) -> list[str]:
    """What a role lets the portal list and watch."""
    [role] = [m for m in manifests if (m["kind"], m["metadata"]["name"]) == (kind, name)]
    return [
        f"{resource}.{rule['apiGroups'][0]}".rstrip(".")
        for rule in role["rules"]
        if rule["verbs"] == ["list", "watch"]
        for resource in rule["resources"]
    ]


ALWAYS = ["pods", "persistentvolumeclaims", "services"]


def test_all_that_quotas_may_count_is_granted_from_the_start() -> None:
    text, manifests = printed()
    found = rights(manifests, "ClusterRole", "gatehouse")
    built_in = {f"{n}.{group}".rstrip(".") for group, names in BUILT_IN.items() for n in names}
    assert (set(found), len(found)) == (built_in, len(built_in))
    assert "secrets" not in text.lower()


def test_a_quota_changes_nothing_that_is_granted_already() -> None:
    before = printed()[1]
    factories.resource_quota({DEPLOYMENTS: "9", "configmaps": "1", "cpu": "1"})
    # The last two are the webhooks, with another credential each time.
    assert printed()[1][:-2] == before[:-2]


def test_narrow_rights_are_for_what_is_counted_and_nothing_else() -> None:
    factories.resource_quota({DEPLOYMENTS: "9", "configmaps": "1", "cpu": "1"})
    text, manifests = printed("--rights", "narrow")
    more = ["configmaps", "deployments.apps"]
    assert rights(manifests, "ClusterRole", "gatehouse") == [*ALWAYS, *more]
    assert "secrets" not in text.lower()


@pytest.mark.parametrize("width", ["narrow", "wide"])
def test_permission_for_secrets_is_limited_to_their_namespaces_with_a_remark(width: str) -> None:
    factories.resource_quota({"count/secrets": "9"})
    text, manifests = printed("--rights", width)
    assert "secrets" not in rights(manifests, "ClusterRole", "gatehouse")
    assert rights(manifests, "Role", "gatehouse-counts") == ["secrets"]
    [binding] = [
        m
        for m in manifests
        if m["kind"] == "RoleBinding" and m["metadata"]["name"] == "gatehouse-counts"
    ]
    assert binding["metadata"]["namespace"] == "team"
    assert text.startswith("# A quota counts the Secrets of team.")


def test_custom_resources_are_granted_where_quotas_count_them() -> None:
    factories.resource_quota({"count/widgets.example.com": "9"})
    manifests = printed()[1]
    assert "widgets.example.com" not in rights(manifests, "ClusterRole", "gatehouse")
    assert rights(manifests, "Role", "gatehouse-counts") == ["widgets.example.com"]


def test_a_choice_is_granted_in_all_namespaces_by_a_role_of_its_own() -> None:
    factories.resource_quota({"secrets": "9"})
    text, manifests = printed("--count", "secrets", "--count", "widgets.example.com")
    chosen = rights(manifests, "ClusterRole", "gatehouse-counts")
    assert chosen == ["secrets", "widgets.example.com"]
    assert "secrets" not in rights(manifests, "ClusterRole", "gatehouse")
    assert not [m for m in manifests if m["kind"] == "Role" and "canary" not in str(m)]
    assert "every Secret of the" in text


@pytest.mark.parametrize("word", ["", "Widgets", "*", "pods/log", "a.B", "a/b.example.com"])
def test_a_choice_that_is_no_resource_is_refused(word: str) -> None:
    with pytest.raises(CommandError, match="--count") as refused:
        printed("--count", word)
    assert refused.value.returncode == 2


def test_the_status_of_quotas_may_be_written() -> None:
    [role] = [m for m in printed()[1] if m["kind"] == "ClusterRole"]
    verbs = {r: rule["verbs"] for rule in role["rules"] for r in rule["resources"]}
    assert verbs["resourcequotas/status"] == ["get", "update", "patch"]


class Stingy(PretendedCluster):
    """A cluster in which some of what is counted may not be listed."""

    def version(self) -> dict[str, str]:
        return {"gitVersion": "v1.36.3"}

    def server_time(self) -> None:
        return None

    def can(self, verb: str, _group: str, resource: str, namespace: str, *, name: str) -> bool:
        del name
        return verb != "list" or (resource, namespace) not in {("deployments", ""), SECRETS}


def test_test_of_a_connection_names_the_rights_that_are_missing() -> None:
    factories.resource_quota({DEPLOYMENTS: "9", "configmaps": "9", "secrets": "9"})
    grants = permissions.grants_of(factories.cluster())
    found = probe.probe(Stingy(), grants=grants)  # type: ignore[arg-type]
    missing = ("list secrets in namespace team", "list deployments.apps")
    assert (found.state, found.missing) == ("ok", missing)


def test_another_clusters_quotas_and_namespaces_that_are_not_there_give_no_right() -> None:
    factories.resource_quota({"secrets": "9", "configmaps": "9"})
    now = timezone.now()
    SyncedObject.objects.create(
        cluster=factories.cluster(), kind="Namespace", name="other", theirs={}, since=now, seen=now
    )
    assert permissions.grants_of(factories.cluster()) == GRANTS
    assert permissions.grants_of(factories.cluster("else")) == GRANTS
