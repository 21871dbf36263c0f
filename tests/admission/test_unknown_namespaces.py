"""The first object of a namespace that a class may give policies to is told to try again."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from admission.metrics import NOT_KNOWN_YET
from admission.models import AuditEvent
from policies import services, snapshot
from policies.models import ClusterFollower, Namespace
from tests.namespace_classes import saved_class
from tests.reviews import new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def heard(cluster: Cluster) -> Callable[..., None]:
    """A follower of the cluster that was heard so many seconds ago."""

    def beat(seconds: float = 1) -> None:
        heartbeat = timezone.now() - dt.timedelta(seconds=seconds)
        ClusterFollower.objects.update_or_create(cluster=cluster, defaults={"heartbeat": heartbeat})

    return beat


def answered(response: Any) -> tuple[bool, int]:
    answer = response.json()["response"]
    return answer["allowed"], answer.get("status", {}).get("code", 200)


def test_a_create_there_is_told_to_try_again_and_counted(
    ask: Callable[..., Any], heard: Callable[..., None]
) -> None:
    saved_class(names=["ns*"])
    heard()
    before = NOT_KNOWN_YET.labels(cluster="demo")._value.get()
    assert answered(ask(review(new_pod()))) == (False, 503)
    [row] = AuditEvent.objects.all()
    assert [each["reason"] for each in row.violations] == ["NamespaceNotKnownYet"]
    assert NOT_KNOWN_YET.labels(cluster="demo")._value.get() == before + 1


def test_it_passes_once_the_namespace_is_known_and_has_its_policies(
    ask: Callable[..., Any], heard: Callable[..., None], cluster: Cluster
) -> None:
    saved_class(names=["ns*"])
    heard()
    snapshot.refresh()
    services.save_namespace(namespace=Namespace(cluster=cluster, name="ns"), user="cluster:demo")
    allowed = ask(review(new_pod()), phase="mutate").json()["response"]
    assert allowed["allowed"]
    assert allowed["patch"], "the class's defaults"


def test_a_namespace_that_is_known_and_gets_nothing_is_judged_at_once(
    ask: Callable[..., Any], heard: Callable[..., None], cluster: Cluster
) -> None:
    saved_class(labels={"tier": "x"})
    heard()
    snapshot.refresh()
    assert answered(ask(review(new_pod()))) == (False, 503)
    services.save_namespace(namespace=Namespace(cluster=cluster, name="ns"), user="ann")
    assert answered(ask(review(new_pod()))) == (True, 200)
    services.delete_namespace(namespace=Namespace.objects.get(), user="ann")
    assert answered(ask(review(new_pod()))) == (False, 503)


@pytest.mark.parametrize("seconds", [None, 11])
def test_without_a_live_follower_what_is_known_decides(
    ask: Callable[..., Any], heard: Callable[..., None], seconds: float | None
) -> None:
    saved_class(names=["ns*"])
    if seconds is not None:
        heard(seconds)
    assert answered(ask(review(new_pod()))) == (True, 200)


@pytest.mark.parametrize(
    ("spec", "authority"),
    [
        ({"names": ["other-*"]}, "portal"),
        ({"clusters": ["prod-*"]}, "portal"),
        ({"names": ["ns"]}, "native"),
    ],
)
def test_nothing_waits_where_no_class_could_match_or_the_portal_does_not_enforce(
    ask: Callable[..., Any],
    heard: Callable[..., None],
    cluster: Cluster,
    spec: dict[str, Any],
    authority: str,
) -> None:
    services.set_authority(cluster=cluster, authority=authority, user="ann")
    saved_class(**spec)
    heard()
    assert answered(ask(review(new_pod()))) == (True, 200)


@pytest.mark.parametrize(
    "request_fields",
    [
        {"operation": "UPDATE", "oldObject": new_pod()},
        {"operation": "DELETE", "object": None, "oldObject": new_pod()},
        {
            "kind": {"group": "", "version": "v1", "kind": "Namespace"},
            "resource": {"group": "", "version": "v1", "resource": "namespaces"},
            "object": {"kind": "Namespace", "metadata": {"name": "ns"}},
        },
        {
            "kind": {"group": "", "version": "v1", "kind": "ResourceQuota"},
            "resource": {"group": "", "version": "v1", "resource": "resourcequotas"},
            "object": quota(),
        },
    ],
    ids=["update", "delete", "namespace", "policy"],
)
def test_only_creates_that_policies_would_judge_wait(
    ask: Callable[..., Any], heard: Callable[..., None], request_fields: dict[str, Any]
) -> None:
    saved_class(names=["ns*"])
    heard()
    assert answered(ask(review(new_pod(), **request_fields))) == (True, 200)
