"""The snapshot holds what the database holds, whatever was written, and however it got there."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.quantity import ZERO
from policies import services, snapshot
from policies.ledger.recount import settle
from policies.models import (
    Cluster,
    LimitRange,
    LimitRangeRow,
    Namespace,
    PolicyRevision,
    ResourceQuota,
    WebhookCredential,
)
from policies.snapshot import Authentication, Snapshot, UnreadablePolicyError, build, holder
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.policy import PolicySet

pytestmark = pytest.mark.django_db
POD = {"type": "Pod", "max": {"cpu": "1"}}
AMOUNTS = ("1024Mi", "1Gi", "500m", "0.5", "1e3", "1k", "2929687.5Ki", "0", "1500m", "0.1n")
NAMES = ("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")
HARD = ("requests.cpu", "limits.memory", "pods", "count/jobs.batch", "limits.nvidia.com/gpu")


def stored(cluster: str, namespace: str) -> PolicySet:
    """What is stored, as if nothing of it were used."""
    found = snapshot.load(cluster, namespace)
    unused = [
        replace(quota, used={name: ZERO for name in quota.hard if name in quota.used})
        for quota in found.resource_quotas
    ]
    return replace(found, resource_quotas=tuple(unused))


def check(now: Snapshot) -> None:
    """Hold it against what is stored, amounts as they are printed, and against a new one."""
    places = list(Namespace.objects.values_list("cluster__name", "name"))
    for cluster, namespace in [*places, *((name, "nowhere") for name in now.clusters)]:
        found = now.clusters[cluster].policy_set(namespace)
        assert repr(found) == repr(stored(cluster, namespace))
        keys = now.clusters[cluster].quota_keys(namespace)
        quotas = ResourceQuota.objects.filter(
            namespace__name=namespace, namespace__cluster__name=cluster
        )
        assert {(name, key.id, key.uid) for name, key in keys.items()} == {
            (quota.name, quota.pk, quota.uid) for quota in quotas
        }
    heads = Cluster.objects.order_by("name").values_list("name", "id", "uid", "policy_revision")
    assert [(c.name, c.id, c.uid, c.revision) for c in now.clusters.values()] == list(heads)
    assert now == build.advance(Snapshot())


class Chance:
    """Policies by chance; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - nothing here is secret

    def some(self, names: tuple[str, ...]) -> dict[str, str]:
        chosen = self.random.sample(names, self.random.randint(1, len(names)))
        return {name: self.random.choice(AMOUNTS) for name in chosen}

    def item(self, kind: str) -> dict[str, Any]:
        """Amounts in any map; few of them keep the rules, which do not matter here."""
        maps = ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"]
        return {
            "type": kind,
            **{name: self.some(NAMES) for name in maps if self.random.random() < 0.5},
        }

    def rule(self) -> dict[str, Any]:
        entry = {"key": "a", "operator": self.random.choice(["Exists", "DoesNotExist"])}
        selector = {"matchLabels": {"b": "c"}, "matchExpressions": [entry]}
        predicate = {"labelSelector": self.random.choice([{}, selector, None])}
        if self.random.random() < 0.5:
            predicate["annotationSelector"] = {"matchLabels": {"d": "e"}}
        return {
            "policyPredicate": predicate,
            "policyAction": {"reject": self.random.random() < 0.5},
        }

    def quota(self) -> dict[str, Any]:
        entry = {"scopeName": "PriorityClass", "operator": "In", "values": ["high", "low"]}
        more = [
            {},
            {"scopes": ["NotTerminating"]},
            {"scopeSelector": {"matchExpressions": [entry]}},
        ]
        return {"hard": self.some(HARD), **self.random.choice([*more, {"scopeSelector": {}}])}

    def spec(self, kind: str) -> dict[str, Any]:
        if kind == "LimitRange":
            return {"limits": [self.item("Container"), self.item("Pod")]}
        if kind == "MetadataPolicy":
            return {
                "rules": [self.rule() for _ in range(self.random.randint(0, 3))],
                "strict": True,
            }
        return self.quota()

    def write(self, namespace: Namespace, name: str) -> None:
        """Store a policy unchecked: what it says need not make sense to come back as it was."""
        kind = self.random.choice(["LimitRange", "MetadataPolicy", "ResourceQuota"])
        mode = {"policy.gatehouse.dev/enforcement": self.random.choice(["enforce", "warn"])}
        place = {"name": name, "namespace": namespace.name, "annotations": mode}
        document = factories.manifest(kind, self.spec(kind), **place)
        policy = services.KINDS[kind](namespace=namespace).read_manifest(document)
        policy.save()
        for row_set, rows in policy.drafts.items():
            manager = getattr(policy, row_set)
            for row in rows:
                setattr(row, manager.field.name, policy)
            manager.bulk_create(rows)
        if isinstance(policy, ResourceQuota):
            settle(policy)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_is_stored(seed: int) -> None:
    chance = Chance(seed)
    for place in (factories.namespace("team"), factories.namespace("team", in_cluster="b")):
        for name in ("b", "a-b", "a", "B", "c"):
            chance.write(place, name)
    check(snapshot.current())


def quota() -> ResourceQuota:
    pods = random.randint(1, 10**6)  # noqa: S311 - nothing here is secret
    return factories.resource_quota({"pods": str(pods)}, scopes=["NotTerminating"])


def delete_quota() -> None:
    services.delete_policy(policy=ResourceQuota.objects.get(), user="x")


def restore_quota() -> None:
    delete_quota()
    gone = PolicyRevision.objects.filter(action="delete").latest("id")
    services.restore_revision(revision=gone, user="x")


def delete_namespace() -> None:
    services.delete_namespace(namespace=Namespace.objects.get(name="team"), user="x")


def delete_cluster() -> None:
    services.delete_cluster(cluster=factories.cluster(), user="x")


def recreate_cluster() -> None:
    delete_cluster()
    for _ in range(3):
        factories.limit_range(POD)
        factories.limit_range()


def write_many() -> None:
    with services.policy_write(factories.cluster()):
        for name in ("a", "b", "c"):
            factories.limit_range(POD, name=name, namespace=name)


def write_unnamed() -> None:
    """Count a write that no revision names, as versions before this one did."""
    LimitRange.objects.update(enforcement="warn")
    Cluster.objects.filter(name="prod").update(policy_revision=F("policy_revision") + 1)


WRITES: list[Callable[[], object]] = [
    quota,
    delete_quota,
    restore_quota,
    delete_namespace,
    delete_cluster,
    recreate_cluster,
    write_many,
    write_unnamed,
    lambda: factories.limit_range({"type": "Pod", "min": {"cpu": "1m"}}),
    lambda: factories.metadata_policy({"policyAction": {"reject": True}}),
    lambda: factories.limited_resources({"resource": "pods", "matchContains": ["pods"]}),
    factories.priority_class,
    lambda: factories.cluster("another"),
    factories.webhook_secret,
]


@pytest.mark.sampled
@pytest.mark.parametrize("change", WRITES, ids=lambda write: write.__name__)
def test_a_refresh_is_as_good_as_a_new_one(change: Callable[[], object]) -> None:
    factories.limit_range(POD)
    factories.limit_range(POD, namespace="other")
    factories.limited_resources({"resource": "services"})
    quota()
    check(snapshot.refresh())
    change()
    check(snapshot.refresh())
    assert snapshot.refresh() is snapshot.current()


def test_what_did_not_change_is_taken_over() -> None:
    factories.limit_range(POD)
    factories.limit_range(POD, namespace="other")
    before = snapshot.refresh().clusters["prod"]
    factories.limit_range(namespace="other")
    after = snapshot.refresh().clusters["prod"]
    assert after.policy_set("team") is before.policy_set("team")
    assert after.policy_set("other") != before.policy_set("other")


def test_no_change_takes_one_query() -> None:
    factories.limit_range(POD)
    snapshot.refresh()
    with CaptureQueriesContext(connection) as queries:
        snapshot.refresh()
    assert len(queries) == 1


def test_equal_content_is_held_once() -> None:
    for namespace in ("team", "other"):
        factories.limit_range(POD, namespace=namespace)
    cluster = snapshot.current().clusters["prod"]
    [team], [other] = (cluster.policy_set(name).limit_ranges for name in ("team", "other"))
    assert team.items is other.items


def test_equal_amounts_stay_as_they_were_typed() -> None:
    for namespace, amount in (("team", "1024Mi"), ("other", "1Gi")):
        factories.limit_range({"type": "Pod", "max": {"memory": amount}}, namespace=namespace)
    check(snapshot.current())


@pytest.mark.parametrize("table", ["policies_limitrange", "policies_limitrangerow"])
def test_a_write_between_two_reads_is_not_missed(table: str) -> None:
    factories.limit_range(POD)
    snapshot.refresh()
    factories.limit_range(POD, name="second")
    wrote: list[str] = []

    def interfere(execute: Any, sql: str, *rest: Any) -> Any:
        if not wrote and sql.startswith("SELECT") and f'FROM "{table}"' in sql:
            wrote.append(table)
            factories.limit_range(name="second")
            factories.limit_range(POD, name="third", namespace="third")
        return execute(sql, *rest)

    with connection.execute_wrapper(interfere):
        now = snapshot.refresh()
    assert wrote
    check(now)


def test_what_cannot_be_read_troubles_its_namespace_alone() -> None:
    factories.limit_range(POD)
    factories.limit_range(POD, namespace="other")
    LimitRangeRow.objects.filter(limit_range__namespace__name="team").update(max="nonsense")
    cluster = snapshot.current().clusters["prod"]
    assert cluster.policy_set("other").limit_ranges
    with pytest.raises(UnreadablePolicyError, match="team/lr"):
        cluster.policy_set("team")
    factories.limit_range(POD, {"type": "Container"})
    check(snapshot.refresh())


def test_secrets_are_told_apart() -> None:
    secret, other = factories.webhook_secret(), factories.webhook_secret("other")
    now = snapshot.current()
    assert now.authenticate("prod", secret) is Authentication.OK
    assert now.authenticate("prod", other) is Authentication.OTHER_CLUSTER
    assert now.authenticate("prod", "guess") is Authentication.UNKNOWN
    assert now.authenticate("nowhere", "guess") is Authentication.UNKNOWN


def test_secrets_are_issued_and_revoked() -> None:
    snapshot.refresh()
    secret = factories.webhook_secret()
    assert snapshot.current().authenticate("prod", secret) is Authentication.UNKNOWN
    assert snapshot.refresh().authenticate("prod", secret) is Authentication.OK
    services.revoke_webhook_credential(credential=WebhookCredential.objects.get(), user="x")
    assert snapshot.refresh().authenticate("prod", secret) is Authentication.UNKNOWN


def test_secrets_expire_in_memory() -> None:
    later = timezone.now() + timedelta(days=1)
    secret = factories.webhook_secret(expires=later)
    cluster = snapshot.current().clusters["prod"]
    digest = WebhookCredential.digest_of(secret)
    assert cluster.credential(digest)
    assert not replace(cluster, credentials={digest: timezone.now()}).credential(digest)


def test_the_limit_of_a_cluster_comes_along() -> None:
    services.save_cluster(cluster=Cluster(name="c", unconfirmed_limit=5), user="x")
    assert snapshot.current().clusters["c"].unconfirmed_limit == 5


def test_the_version_of_a_cluster_reaches_all_its_namespaces() -> None:
    factories.limit_range(POD)
    before = snapshot.refresh().clusters["prod"]
    assert {str(before.policy_set(name).version) for name in ("team", "nowhere")} == {"1.36"}
    services.set_kubernetes_version(cluster=factories.cluster(), version="1.37", user="x")
    after = snapshot.refresh().clusters["prod"]
    assert {str(after.policy_set(name).version) for name in ("team", "nowhere")} == {"1.37"}
    check(snapshot.current())


def test_a_namespace_that_no_setting_concerns_keeps_its_policy_set() -> None:
    factories.limit_range(POD)
    before = snapshot.refresh().clusters["prod"].policy_set("team")
    services.set_limited_resources(cluster=factories.cluster(), entries=[], user="x")
    services.save_cluster(cluster=Cluster.objects.get(), user="x")
    assert snapshot.refresh().clusters["prod"].policy_set("team") is before


class CountingLock:
    """A lock that knows how many have come to it."""

    def __init__(self) -> None:
        self.lock, self.came = threading.Lock(), 0

    def __enter__(self) -> None:
        self.came += 1
        self.lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self.lock.release()


@pytest.mark.django_db(transaction=True)
def test_those_who_wait_share_one_refresh() -> None:
    factories.limit_range(POD)
    keeper = holder._holder
    found: list[Snapshot] = []

    def ask() -> None:
        found.append(snapshot.refresh())
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    keeper._refresh_lock = lock = CountingLock()  # type: ignore[assignment]
    with lock.lock:
        for thread in threads:
            thread.start()
        while lock.came < len(threads):
            threading.Event().wait(0.01)
    for thread in threads:
        thread.join()
    assert keeper._refreshes_begun == 1
    assert all(each is found[0] for each in found)


def test_revisions_are_read_for_a_batch() -> None:
    cluster, other = factories.cluster(), factories.cluster("other")
    factories.limit_range(POD)
    known = snapshot.lock_revisions([other.pk, cluster.pk, 0])
    assert known == {cluster.pk: (cluster.uid, 2), other.pk: (other.uid, 1)}
    assert snapshot.lock_revisions([]) == {}
