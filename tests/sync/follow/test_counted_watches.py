"""What a list leaves to do: charges that are too high are looked at again until they are not."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from engine.request import GroupVersionResource, Operation
from policies.models import Charge, QuotaUsage
from sync.client.kinds import kind_of
from sync.client.watches import KindWatch, Target, path_of
from sync.follow import ledger_changes
from sync.follow.counted_objects import CountedObjects, trim_object
from sync.follow.counted_watches import CountedWatches
from sync.follow.inbox import LedgerInbox
from sync.follow.ledger_changes import MetList
from tests import factories
from tests.builders import request
from tests.charges import admit
from tests.sync.pretended import live_pod

if TYPE_CHECKING:
    from collections.abc import Callable

PODS = GroupVersionResource(resource="pods")
LEASE: Any = SimpleNamespace(guard=nullcontext)


def listed(*items: dict[str, Any], requested: float | None = None) -> CountedObjects:
    objects = CountedObjects()
    objects.replace([trim_object(item) for item in items], "", requested=requested)
    return objects


@pytest.mark.django_db
def test_charge_lowered_just_before_a_list_is_to_be_looked_at_again() -> None:
    factories.resource_quota({"cpu": "9"})
    pods = {name: live_pod(name, cpu="1") for name in ("lowered", "alike")}
    for pod in pods.values():
        assert admit(request(pod, namespace="team")) == [True]
    lowered = pods["lowered"]
    large = live_pod("lowered", cpu="3") | {"metadata": lowered["metadata"]}
    resize = {"operation": Operation.UPDATE, "sub_resource": "resize", "old_object": lowered}
    assert admit(request(large, namespace="team", **resize)) == [True]
    # The watch's event of the smaller pod is not known: the list that replaced it is all there is.
    met = ledger_changes.meet_list(
        factories.cluster(), LEASE, PODS, listed(*pods.values()), figures={}
    )
    assert met == MetList(is_believed=True, recheck={lowered["metadata"]["uid"]})
    assert QuotaUsage.objects.get().used["cpu"] == "4"
    assert set(Charge.objects.values_list("state", flat=True)) == {"confirmed"}


@pytest.mark.django_db
def test_what_was_charged_since_the_list_was_requested_is_not_gone() -> None:
    factories.resource_quota({"pods": "9"})
    there, gone, since = (
        [live_pod(f"there-{n}") for n in range(5)],
        live_pod("gone"),
        live_pod("since"),
    )
    for pod in (*there, gone):
        assert admit(request(pod, namespace="team")) == [True]
    requested = time.monotonic()
    assert admit(request(since, namespace="team")) == [True]
    # Another pass has seen it already, no event of the watch has shown it.
    Charge.objects.update(state="confirmed")
    known = listed(*there, requested=requested)
    assert ledger_changes.meet_list(factories.cluster(), LEASE, PODS, known, figures={}).is_believed
    left = Charge.objects.filter(state="confirmed").values_list("object_uid", flat=True)
    assert set(left) == {pod["metadata"]["uid"] for pod in (*there, since)}


@pytest.mark.django_db
def test_what_vanished_in_a_gap_of_one_namespace_is_gone_whatever_others_were_listed() -> None:
    factories.resource_quota({"pods": "9"})
    known, gone = CountedObjects(), live_pod("gone")
    known.replace([], "other", requested=time.monotonic())
    there = [live_pod(f"there-{n}") for n in range(5)]
    for pod in (*there, gone):
        assert admit(request(pod, namespace="team")) == [True]
    Charge.objects.update(state="confirmed")
    known.replace([trim_object(pod) for pod in there], "team", requested=time.monotonic())
    ledger_changes.meet_list(factories.cluster(), LEASE, PODS, known, figures={})
    left = Charge.objects.filter(state="confirmed").values_list("object_uid", flat=True)
    assert set(left) == {pod["metadata"]["uid"] for pod in there}


def test_what_is_to_be_looked_at_again_after_a_list_is_an_event() -> None:
    pod, other = live_pod("lowered"), live_pod("alike")
    uid = pod["metadata"]["uid"]

    class Jobs:
        async def run(self, _work: Callable[..., MetList], *_: object) -> MetList:
            return MetList(is_believed=True, recheck={uid, "deleted since"})

    async def meet() -> None:
        await watches.meet(PODS, LEASE, {})

    inbox, kind = LedgerInbox(), kind_of("Pod")
    nobody: Any = SimpleNamespace()
    jobs: Any = Jobs()
    watches = CountedWatches(nobody, nobody, jobs, nobody, inbox)
    watches._objects[PODS] = listed(pod, other)
    watches._tasks[PODS, ""] = nobody
    watches._watches[PODS, ""] = KindWatch(Target(kind, path_of(kind)), version="7")
    asyncio.run(meet())
    batch = inbox.take()
    assert batch is not None
    assert [change.uid for change in batch.events[PODS]] == [uid]
