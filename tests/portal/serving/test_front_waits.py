"""A pod that comes right behind its LimitRange is judged by it, and holds up nobody meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from admission.api import waits
from policies import services, snapshot
from policies.ledger import observed
from policies.models import Charge, Cluster, ClusterFollower, OncomingWrite
from policies.snapshot import announcements, marks
from policies.snapshot.announcements import Seen
from portal.serving.front import Front
from portal.serving.lean import LeanHandler
from tests.portal.serving.asgi import Exchange, answered, scope_of
from tests.portal.serving.test_front import others
from tests.reviews import SEED_LIMITS, new_pod, patch_of, quota, review

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

pytestmark = pytest.mark.django_db(transaction=True)
LIMITS = {"group": "", "version": "v1", "resource": "limitranges"}
ASKED = review(
    SEED_LIMITS,
    kind={"group": "", "version": "v1", "kind": "LimitRange"},
    resource=LIMITS,
    name="limits",
)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep policies fresh; nobody gives up while a slow machine runs this test."""
    monkeypatch.setattr(waits, "LONGEST", 60.0)
    monkeypatch.setattr(waits, "PAUSES", (0.5, 20.0))
    monkeypatch.setattr(marks, "SECONDS", 60.0)
    snapshot.start()
    yield
    snapshot.stop()


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(name="demo")
    services.save_cluster(cluster=made, user="root")
    ClusterFollower.objects.create(cluster=made, heartbeat=Now())
    return made


@pytest.fixture
def headers(cluster: Cluster) -> dict[str, str]:
    """The headers of a cluster's call, with a credential that this process knows."""
    secret = services.issue_webhook_credential(cluster=cluster, label="hook", user="root")[1]
    snapshot.refresh()
    return {"authorization": f"Bearer {secret}"}


def follow(cluster: Cluster) -> None:
    """What a follower does when the cluster shows the LimitRange."""
    try:
        with transaction.atomic():
            services.apply_manifest(
                cluster=cluster, manifest=SEED_LIMITS, user="follower", create_namespace=True
            )
            seen = Seen("LimitRange", "ns", "limits", uid="", resource_version="1")
            assert announcements.arrived(cluster.pk, [seen]) == 1
    finally:
        connection.close()


def test_pod_waits_for_the_limit_range_and_others_do_not(
    cluster: Cluster, headers: dict[str, str]
) -> None:
    async def play(ask: Callable[[Any, str], Awaitable[Any]]) -> Any:
        assert (await ask(ASKED, "validate"))["response"]["allowed"] is True
        pod = asyncio.ensure_future(ask(review(new_pod()), "mutate"))
        other = await ask(review(new_pod(namespace="other"), namespace="other"), "mutate")
        assert "500m" not in json.dumps(patch_of(other))
        assert not pod.done()
        follower = threading.Thread(target=follow, args=(cluster,))
        follower.start()
        answer = await pod
        follower.join()
        return answer

    patched = json.dumps(patch_of(_played(headers, play)))
    assert "500m" in patched
    assert not OncomingWrite.objects.exists()


def _played(headers: dict[str, str], play: Callable[..., Awaitable[Any]]) -> Any:
    """Have one front, in one loop, answer all that ``play`` asks."""
    front = Front(others)

    async def ask(asked: Any, phase: str) -> Any:
        body = json.dumps(asked).encode()
        exchange = Exchange(pieces=[body])
        scope = scope_of(f"/admission/demo/{phase}", body, headers=headers)
        await front(scope, exchange.receive, exchange.send)
        return json.loads(exchange.body)

    async def serve() -> Any:
        front.begin(asyncio.get_running_loop())
        try:
            return await play(ask)
        finally:
            await front.close()

    return asyncio.run(serve())


def test_thread_waits_as_the_loop_does(cluster: Cluster, headers: dict[str, str]) -> None:
    def lean(asked: Any, phase: str) -> Any:
        body = json.dumps(asked).encode()
        padded = body + b" " * 64 * 1024  # more than the loop answers
        scope = scope_of(f"/admission/demo/{phase}", padded, headers=headers)
        return json.loads(answered(Front(LeanHandler(others)), scope, padded).body)

    assert lean(ASKED, "validate")["response"]["allowed"] is True
    follower = threading.Timer(0.05, follow, args=(cluster,))
    follower.start()
    assert "500m" in json.dumps(patch_of(lean(review(new_pod()), "mutate")))
    follower.join()


def test_refusal_for_want_of_room_is_decided_again(
    cluster: Cluster, headers: dict[str, str]
) -> None:
    services.apply_manifest(cluster=cluster, manifest=quota(), user="root", create_namespace=True)
    snapshot.refresh()

    async def play(ask: Callable[[Any, str], Awaitable[Any]]) -> Any:
        assert (await ask(review(new_pod("first")), "validate"))["response"]["allowed"] is True
        second = asyncio.ensure_future(ask(review(new_pod("second")), "validate"))
        # Who does not lack room is answered meanwhile.
        await ask(review(new_pod(namespace="other"), namespace="other"), "validate")
        assert not second.done()
        freer = threading.Thread(target=free, args=(cluster,))
        freer.start()
        answer = await second
        freer.join()
        return answer

    assert _played(headers, play)["response"]["allowed"] is True


def free(cluster: Cluster) -> None:
    """What a follower does when the first pod is deleted."""
    try:
        uids = Charge.objects.values_list("object_uid", flat=True)
        assert observed.release_gone(cluster.pk, "pods", dict.fromkeys(uids, "ns")) == 1
    finally:
        connection.close()


def test_hint_is_answered_in_a_thread(cluster: Cluster, headers: dict[str, str]) -> None:
    body = json.dumps({**ASKED, "request": {**ASKED["request"], "operation": "DELETE"}}).encode()
    scope = scope_of("/admission/demo/hint", body, headers=headers)
    found = answered(Front(LeanHandler(others)), scope, body)
    assert json.loads(found.body)["response"]["allowed"] is True
    assert OncomingWrite.objects.get().operation == "DELETE"
    assert answered(Front(others), scope, body).status == 299
