"""Script of the demo's month: WORKLOADS, ROLLOUTS, ODD pods by hand, CHANGES of policies."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from django.utils import timezone

from engine.policy import ENFORCEMENT_ANNOTATION
from portal.dev.demo.workloads import Workload, requirements

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping

BEGAN: Final = timedelta(days=28)
ADA, GRACE, LIN, CI = "ada.okafor", "grace.mbeki", "lin.wei", "ci-deployer"


@contextmanager
def at(moment: dt.datetime) -> Iterator[None]:
    """Stop Django's clock, which dates stored rows, at a moment."""
    with patch.object(timezone, "now", return_value=moment):
        yield


@dataclass(frozen=True, slots=True)
class DemoEdit:
    """A manifest that somebody saved; ``back`` is how long ago.

    One with a title was proposed as a change, which somebody else published.
    """

    back: timedelta
    cluster: str
    manifest: Mapping[str, Any]
    user: str
    reason: str
    title: str = ""
    ticket: str = ""
    publisher: str = ""


@dataclass(frozen=True, slots=True)
class DemoRollout:
    """A Deployment's new pod template: each new pod that is admitted replaces an old one."""

    back: timedelta
    workload: Workload


def _shop(namespace: str, name: str, resources: dict[str, Any], **more: Any) -> Workload:
    team_label = {"team": namespace}
    shop_fields = {"cluster": "demo", "priority": "standard", "labels": team_label}
    return Workload(namespace=namespace, name=name, resources=resources, **{**shop_fields, **more})


_SMALL: Final = requirements("250m", "512Mi", cpu_limit="500m", memory_limit="1Gi")
_EMPTY: Final = requirements()
_WEB_LABELS: Final = {"team": "web", "cost-center": "shop-4200"}
WORKLOADS: Final = (
    _shop(
        "payments",
        "ledger-api",
        requirements("500m", "1Gi", cpu_limit="1", memory_limit="2Gi"),
        replicas=(6, 10),
        priority="critical",
    ),
    _shop(
        "payments",
        "card-gateway",
        requirements("750m", "1Gi", cpu_limit="1500m", memory_limit="2Gi"),
        replicas=(5, 8),
        priority="critical",
    ),
    _shop("payments", "fraud-score", _SMALL, replicas=(2, 2), priority="critical"),
    _shop("payments", "receipts", _SMALL, replicas=(4, 8)),
    _shop("payments", "reconcile", _EMPTY, replicas=(2, 2), hours=(1, 7, 13, 19)),
    _shop(
        "web",
        "storefront",
        requirements("300m", "384Mi", cpu_limit="600m", memory_limit="768Mi"),
        replicas=(8, 15),
        labels=_WEB_LABELS,
    ),
    _shop(
        "web",
        "edge-cache",
        requirements("200m", "1Gi", memory_limit="1Gi"),
        replicas=(4, 6),
        labels=_WEB_LABELS,
    ),
    # The only pods without a cost center, which a policy asks for in audit.
    _shop("web", "page-check", _EMPTY, replicas=(1, 3), hours=tuple(range(24))),
    _shop("web", "legacy-banner", _EMPTY, replicas=(2, 2), labels={}),
    _shop(
        "reports",
        "render",
        requirements("1", "2Gi", cpu_limit="2", memory_limit="2560Mi"),
        replicas=(3, 4),
        priority="",
    ),
    _shop(
        "batch",
        "nightly-etl",
        requirements("2", "4Gi", cpu_limit="2", memory_limit="4Gi"),
        replicas=(4, 7),
        priority="batch",
        hours=(2,),
    ),
    _shop(
        "batch",
        "thumbnails",
        requirements("500m", "1Gi", cpu_limit="500m", memory_limit="1Gi"),
        replicas=(2, 3),
        priority="batch",
        hours=(0, 4, 8, 12, 16, 20),
    ),
    Workload(
        cluster="demo-connected",
        namespace="checkout",
        name="cart",
        resources=_SMALL,
        replicas=(9, 14),
        labels={"owner": "checkout"},
    ),
    Workload(
        cluster="demo-connected",
        namespace="checkout",
        name="promo-worker",
        resources=_EMPTY,
    ),
    Workload(
        cluster="demo-connected",
        namespace="search",
        name="query",
        resources=requirements("1", "4Gi", cpu_limit="2", memory_limit="6Gi"),
        replicas=(6, 11),
        labels={"owner": "search"},
    ),
    Workload(
        cluster="demo-priority",
        namespace="covered",
        name="operator",
        resources=_SMALL,
        replicas=(7, 9),
        priority="cluster-services",
    ),
    Workload(
        cluster="demo-priority",
        namespace="kube-system",
        name="log-shipper",
        resources=_SMALL,
        replicas=(1, 1),
        priority="other",
    ),
)


def _payments_api(template_hash: str, cpu: str, memory: str) -> Workload:
    return _shop(
        "payments",
        "payments-api",
        requirements(cpu, memory, cpu_limit=cpu, memory_limit=memory),
        replicas=(5, 5),
        priority="",
        template_hash=template_hash,
    )


ROLLOUTS: Final = (
    DemoRollout(timedelta(days=27, hours=20), _payments_api("5b8f6d9c47", "1", "1Gi")),
    DemoRollout(timedelta(days=11, hours=6), _payments_api("74c9d5f6b8", "1", "1Gi")),
    DemoRollout(timedelta(hours=3), _payments_api("6d7f9c8b54", "2", "2Gi")),
)
"""The last one is stuck: quota ``compute`` was lowered, and has no room for twice the CPU."""

ODD: Final = (
    (timedelta(hours=50), _shop("web", "debug-shell", _EMPTY, labels={}, user=LIN)),
    (
        timedelta(hours=31),
        _shop(
            "payments",
            "load-test",
            requirements("4", "8Gi", cpu_limit="4", memory_limit="8Gi"),
            user=LIN,
        ),
    ),
    (
        timedelta(hours=20),
        _shop("payments", "profiler", requirements("100m", "128Mi", cpu_limit="1"), user=GRACE),
    ),
    (
        timedelta(hours=9),
        _shop(
            "reports",
            "backfill",
            requirements("2", "3Gi", cpu_limit="2", memory_limit="6Gi"),
            user=CI,
        ),
    ),
    (
        timedelta(hours=6),
        _shop("payments", "sidecar-test", requirements("10m", "16Mi"), user=LIN),
    ),
    (timedelta(hours=4), _shop("web", "migration", _SMALL, priority="batch", user=CI)),
    (
        timedelta(hours=2),
        _shop(
            "payments",
            "ledger-canary",
            requirements("750m", "2Gi", cpu_limit="1", memory_limit="3Gi"),
            priority="critical",
            user=GRACE,
        ),
    ),
    (
        timedelta(minutes=47),
        _shop(
            "payments",
            "settlement",
            requirements("1", "3Gi", cpu_limit="2", memory_limit="3Gi"),
            priority="critical",
            user=CI,
        ),
    ),
    (
        timedelta(minutes=18),
        _shop("web", "banner", requirements("200m", "4Gi", memory_limit="4Gi"), user=ADA),
    ),
)
"""Pods that a person creates once, by hand; nearly all are denied."""


def _container_range(
    namespace: str, *, labels: dict[str, str] | None = None, **range_item: Any
) -> dict[str, Any]:
    spec = {"limits": [{"type": "Container", **range_item}]}
    manifest = _demo_manifest("LimitRange", "limits", namespace, spec)
    if labels:
        manifest["metadata"]["labels"] = labels
    return manifest


def _pod_quota(
    name: str, namespace: str, hard: dict[str, str], priority: str, *, operator: str = "In"
) -> dict[str, Any]:
    match = {"scopeName": "PriorityClass", "operator": operator, "values": [priority]}
    spec = {"hard": hard, "scopeSelector": {"matchExpressions": [match]}}
    return _demo_manifest("ResourceQuota", name, namespace, spec)


def _label_rule(name: str, label: str, enforcement: str) -> dict[str, Any]:
    missing_label = {"key": label, "operator": "DoesNotExist"}
    predicate = {"labelSelector": {"matchExpressions": [missing_label]}}
    spec = {"rules": [{"policyPredicate": predicate, "policyAction": {"reject": True}}]}
    policy = _demo_manifest("MetadataPolicy", name, "web", spec)
    policy["metadata"]["annotations"] = {ENFORCEMENT_ANNOTATION: enforcement}
    return policy


def _demo_manifest(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    api_version = "policy.gatehouse.dev/v1alpha1" if kind == "MetadataPolicy" else "v1"
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


_REPORTS: Final = {
    "default": {"cpu": "1", "memory": "1Gi"},
    "defaultRequest": {"cpu": "500m", "memory": "512Mi"},
}
_WEB: Final = {
    "max": {"cpu": "1", "memory": "2Gi"},
    "default": {"cpu": "500m", "memory": "512Mi"},
    "defaultRequest": {"cpu": "200m", "memory": "256Mi"},
}
CHANGES: Final = (
    DemoEdit(
        timedelta(days=24, hours=3),
        "demo",
        _label_rule("ownership", "team", "warn"),
        ADA,
        "every pod needs a team; warn for a week first",
    ),
    DemoEdit(
        timedelta(days=17, hours=2),
        "demo",
        _label_rule("ownership", "team", "enforce"),
        ADA,
        "the week is over",
        title="Enforce ownership in web",
        ticket="PLAT-2188",
        publisher=GRACE,
    ),
    DemoEdit(
        timedelta(days=10, hours=5),
        "demo",
        _container_range("reports", max={"cpu": "4", "memory": "2Gi"}, **_REPORTS),
        LIN,
        "two nodes ran out of memory on Tuesday",
        title="Lower the memory maximum of reports",
        ticket="PLAT-2207",
        publisher=ADA,
    ),
    DemoEdit(
        timedelta(days=9, hours=7),
        "demo",
        _container_range("reports", max={"cpu": "4", "memory": "3Gi"}, **_REPORTS),
        GRACE,
        "render needs 2.5Gi until it streams",
    ),
    DemoEdit(
        timedelta(days=7, hours=1),
        "demo",
        _label_rule("cost-center", "cost-center", "audit"),
        ADA,
        "see who lacks it before anybody is refused",
    ),
    DemoEdit(
        timedelta(days=6, hours=4),
        "demo",
        _pod_quota(
            "critical",
            "payments",
            {"requests.cpu": "12", "requests.memory": "20Gi", "pods": "20"},
            "critical",
        ),
        ADA,
        "room for the second region's gateway",
    ),
    DemoEdit(
        timedelta(hours=21),
        "demo",
        _pod_quota(
            "compute",
            "payments",
            {"requests.cpu": "8", "requests.memory": "24Gi"},
            "critical",
            operator="NotIn",
        ),
        LIN,
        "give back what payments does not use",
        title="Lower compute of payments",
        ticket="PLAT-2231",
        publisher=GRACE,
    ),
    DemoEdit(
        timedelta(hours=19),
        "demo",
        _container_range("web", maxLimitRequestRatio={"cpu": "4"}, **_WEB),
        LIN,
        "noisy neighbours on the edge nodes",
    ),
    DemoEdit(
        timedelta(hours=5),
        "demo",
        _pod_quota("no-batch", "web", {"pods": "0"}, "batch"),
        ADA,
        "batch work has a namespace of its own",
        title="Keep batch work out of web",
        publisher=LIN,
    ),
)
OPEN_CHANGE: Final = (
    DemoEdit(
        timedelta(minutes=50),
        "demo",
        _container_range("reports", max={"cpu": "4", "memory": "2Gi"}, **_REPORTS),
        LIN,
        "nodes ran out of memory twice this week",
        title="Lower the memory maximum to 2Gi",
        ticket="PLAT-2214",
    ),
    DemoEdit(
        timedelta(minutes=48),
        "demo",
        _container_range(
            "payments",
            labels={"managed-by": "platform"},
            min={"cpu": "50m", "memory": "64Mi"},
            max={"cpu": "2", "memory": "2Gi"},
            default={"cpu": "500m", "memory": "512Mi"},
            defaultRequest={"cpu": "250m", "memory": "256Mi"},
            maxLimitRequestRatio={"cpu": "4"},
        ),
        LIN,
        "nodes ran out of memory twice this week",
    ),
)
"""The objects of a change that is still a draft; the first one names it."""
OPEN_COMMENT: Final = (
    timedelta(minutes=31), GRACE, "render needs 2.5Gi until it streams: let us replay this first"
)  # fmt: skip
