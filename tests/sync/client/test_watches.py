"""A watch gives a complete list, then each change, and continues after whatever happens."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest

from sync.client import watches
from sync.client.kinds import kind_of
from sync.client.watches import KindWatch, Listed, Target, WatchClient, path_of
from sync.errors import (
    APIError,
    ForbiddenError,
    GarbageError,
    RefusedAddressError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
    UntrustedError,
)
from sync.values import Credentials
from tests.builders import resource_quota
from tests.sync.fake_api import FakeAPI, fake_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sync.values import Event

    Change = Listed | Event
LOOPBACK = [ip_network("127.0.0.0/8")]


def quota(name: str = "q", pods: str = "5") -> dict[str, Any]:
    manifest = resource_quota({"pods": pods})
    return {**manifest, "metadata": {"name": name, "namespace": "default"}, "status": {}}


@pytest.fixture
def api() -> Iterator[FakeAPI]:
    with fake_api() as made:
        made.store.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        made.store.put(quota("old"))
        yield made


def watch(keep: Any = None) -> KindWatch:
    kind = kind_of("ResourceQuota")
    return KindWatch(Target(kind, path_of(kind), keep))


def told(change: Change) -> Any:
    """A list as the names on it, an event as its type and name."""
    if isinstance(change, Listed):
        return sorted(item["metadata"]["name"] for item in change.items)
    return change.type, change.object["metadata"].get("name", "")


def follow(
    api: FakeAPI,
    watched: KindWatch,
    number: int,
    act: Callable[[int], object] = lambda _number: None,
    credentials: Credentials | None = None,
) -> list[Any]:
    """The first so many changes; ``act`` is called after each, with how many there were."""

    async def go() -> list[Any]:
        found: list[Any] = []
        client = WatchClient(credentials or api.credentials, LOOPBACK)
        try:
            while len(found) < number:
                async with aclosing(client.changes(watched)) as changes:
                    async for change in changes:
                        found.append(told(change))
                        await asyncio.to_thread(act, len(found))
                        if len(found) == number:
                            return found
        finally:
            await client.close()
        return found

    return asyncio.run(asyncio.wait_for(go(), 20))


@pytest.mark.parametrize("knows_watch_lists", [True, False])
def test_list_comes_first_and_then_each_change(api: FakeAPI, *, knows_watch_lists: bool) -> None:
    api.knows_watch_lists = knows_watch_lists

    def act(number: int) -> None:
        if number == 1:
            api.store.put(quota("new"))
        if number == 2:
            api.store.put(quota("new", "6"))
            api.store.remove("ResourceQuota", "old", "default")

    found = follow(api, watch(), 4, act)
    assert found == [["old"], ("ADDED", "new"), ("MODIFIED", "new"), ("DELETED", "old")]
    listed = [path for _, path in api.asked if "limit=" in path]
    assert bool(listed) is not knows_watch_lists


def test_list_has_what_a_server_sends_while_it_catches_up(api: FakeAPI) -> None:
    changed, old = quota("new", "6"), quota("old")
    for each in (changed, old):
        each["metadata"] = {**each["metadata"], "resourceVersion": "3"}
    api.catching_up = [("ADDED", changed), ("DELETED", old), ("MODIFIED", changed)]
    assert follow(api, watch(), 1) == [["new"]]


def test_list_is_read_page_by_page(api: FakeAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "PAGE", 2)
    api.knows_watch_lists = False
    for number in range(4):
        api.store.put(quota(f"q{number}"))
    assert follow(api, watch(), 1) == [["old", "q0", "q1", "q2", "q3"]]


def test_watch_continues_without_a_gap(api: FakeAPI) -> None:
    watched = watch()
    assert follow(api, watched, 1) == [["old"]]
    api.store.put(quota("between"))
    assert follow(api, watched, 1) == [("ADDED", "between")]


def test_version_too_old_leads_to_another_list(api: FakeAPI) -> None:
    watched = watch()
    follow(api, watched, 1)
    api.store.put(quota("between"))
    api.store.compact()
    api.store.put(quota("later"))
    assert follow(api, watched, 1) == [["between", "later", "old"]]


def test_watch_is_current_only_while_it_is_open(api: FakeAPI) -> None:
    watched = watch()
    seen = []
    follow(api, watched, 2, lambda number: (seen.append(watched.is_current), _put(api, number)))
    assert seen == [True, True]
    assert not watched.is_open


def _put(api: FakeAPI, number: int) -> None:
    if number == 1:
        api.store.put(quota("new"))


def test_only_what_is_wanted_is_kept(api: FakeAPI) -> None:
    def keep(item: dict[str, Any]) -> dict[str, Any] | None:
        return None if item["metadata"]["name"] == "old" else item

    api.store.put(quota("new"))
    assert follow(api, watch(keep), 1) == [["new"]]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("garbage", GarbageError),
        ("reset", UnreachableError),
        ("status-403", ForbiddenError),
        ("redirect", GarbageError),
    ],
)
def test_trouble_is_an_error_of_ours(api: FakeAPI, fault: str, error: type[APIError]) -> None:
    api.inject(fault, path="watch=true")
    with pytest.raises(error):
        follow(api, watch(), 1)


def test_flood_is_bounded(api: FakeAPI) -> None:
    api.inject("flood", path="watch=true")
    with pytest.raises((TooLargeError, GarbageError, UnreachableError)):
        follow(api, watch(), 1)


def test_wrong_token_is_refused(api: FakeAPI) -> None:
    wrong = Credentials(api.credentials.server, api.credentials.ca, "wrong")
    with pytest.raises(UnauthorizedError):
        follow(api, watch(), 1, credentials=wrong)


def test_unknown_authority_is_not_trusted(api: FakeAPI) -> None:
    with fake_api() as other:
        mixed = Credentials(api.credentials.server, other.credentials.ca, "fake-token")
        with pytest.raises(UntrustedError):
            follow(api, watch(), 1, credentials=mixed)


def test_address_that_is_not_allowed_is_not_dialled(
    api: FakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.sync.client.test_watches.LOOPBACK", [])
    with pytest.raises(RefusedAddressError):
        follow(api, watch(), 1)
    assert api.asked == []


def test_server_that_is_not_there_is_unreachable(api: FakeAPI) -> None:
    nowhere = Credentials("https://127.0.0.1:1", api.credentials.ca, "fake-token")
    with pytest.raises(UnreachableError):
        follow(api, watch(), 1, credentials=nowhere)
