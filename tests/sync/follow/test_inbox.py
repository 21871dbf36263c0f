"""What is stored next: the most urgent first, nothing twice, nothing lost."""

from __future__ import annotations

import asyncio
from typing import Any

from engine.request import GroupVersionResource
from sync.follow.inbox import LedgerBatch, LedgerInbox, PolicyInbox, WatchedChange
from sync.values import ObjectKey

PODS = GroupVersionResource(resource="pods")
CLAIMS = GroupVersionResource(resource="persistentvolumeclaims")


def item(uid: str, kind: str = "Pod", version: str = "1") -> dict[str, Any]:
    metadata = {"name": uid, "namespace": "team", "uid": uid, "resourceVersion": version}
    return {"kind": kind, "metadata": metadata}


def there(uid: str) -> WatchedChange:
    return WatchedChange(item(uid))


def gone(uid: str) -> WatchedChange:
    return WatchedChange(item(uid), is_gone=True)


def taken(inbox: LedgerInbox) -> LedgerBatch:
    batch = inbox.take()
    assert batch is not None
    return batch


def test_what_is_gone_comes_first_and_is_not_charged_again() -> None:
    inbox = LedgerInbox()
    inbox.put(PODS, there("a"))
    inbox.put(PODS, there("b"))
    inbox.note_new_quotas()
    inbox.put(PODS, gone("a"))
    assert taken(inbox).gone == {PODS: {"a": "team"}}
    assert taken(inbox).has_new_quotas
    assert [change.uid for change in taken(inbox).events[PODS]] == ["b"]
    assert inbox.take() is None


def test_list_replaces_the_events_before_it_and_comes_alone() -> None:
    inbox = LedgerInbox()
    inbox.put(PODS, there("a"))
    inbox.put_list(PODS)
    inbox.put_list(CLAIMS)
    assert taken(inbox).has_new_quotas
    assert {taken(inbox).listed, taken(inbox).listed} == {PODS, CLAIMS}
    assert inbox.take() is None


def test_what_could_not_be_taken_in_comes_again_in_order() -> None:
    inbox = LedgerInbox()
    inbox.put(PODS, there("a"))
    inbox.put(PODS, there("b"))
    failed = taken(inbox)
    inbox.put(PODS, gone("b"))
    inbox.put(PODS, there("c"))
    inbox.put_back(failed)
    assert taken(inbox).gone == {PODS: {"b": "team"}}
    again = taken(inbox)
    assert [change.uid for change in again.events[PODS]] == ["a", "c"]
    assert again.since == failed.since


def test_readers_of_watches_wait_for_room() -> None:
    async def go() -> bool:
        inbox = LedgerInbox()
        for number in range(20_001):
            inbox.put(PODS, there(str(number)))
        waiting = asyncio.create_task(inbox.wait_for_room())
        await asyncio.sleep(0)
        was_waiting = not waiting.done()
        inbox.take()
        await asyncio.wait_for(waiting, 5)
        return was_waiting

    assert asyncio.run(go())


def key(name: str) -> ObjectKey:
    return ObjectKey("ResourceQuota", "team", name)


def test_newest_event_of_a_policy_counts_and_a_list_replaces_all() -> None:
    inbox = PolicyInbox()
    inbox.put(key("a"), WatchedChange(item("a", "ResourceQuota", "1")))
    inbox.put(key("a"), WatchedChange(item("a", "ResourceQuota", "2"), is_gone=True))
    batch = inbox.take()
    assert [seen.resource_version for seen in batch.seen()] == [None]
    inbox.put(key("b"), WatchedChange(item("b", "ResourceQuota")))
    inbox.put_list("ResourceQuota", (item("c", "ResourceQuota"),))
    assert [seen.name for seen in inbox.take().seen()] == ["c"]
    assert inbox.take().is_empty


def test_newer_policies_win_over_those_that_come_again() -> None:
    inbox = PolicyInbox()
    inbox.put(key("a"), WatchedChange(item("old", "ResourceQuota")))
    failed = inbox.take()
    inbox.put(key("a"), WatchedChange(item("new", "ResourceQuota")))
    inbox.put_back(failed)
    batch = inbox.take()
    assert batch.changes[key("a")].uid == "new"
    assert batch.since == failed.since
