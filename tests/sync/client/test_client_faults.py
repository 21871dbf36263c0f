"""What the client makes of a hostile or broken server: an error of ours, soon, and nothing else."""

from __future__ import annotations

import time
from dataclasses import replace
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

import pytest

from sync.addresses import is_allowed
from sync.client import KINDS, Client
from sync.client.answers import (
    checked_event,
    checked_object,
    checked_page,
    decode,
    error_from,
)
from sync.errors import (
    AlreadyExistsError,
    APIError,
    BusyError,
    ExpiredError,
    FieldConflictError,
    GarbageError,
    InvalidError,
    RefusedAddressError,
    UnreachableError,
    UntrustedError,
)
from sync.values import Credentials, Limits
from tests.processes import free_port
from tests.sync.fake_api import FakeAPI, fake_api

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.fixtures import SettingsWrapper

STALL = 60.0  # seconds that the fake server stalls for
LIMITS = Limits(seconds=1.0, read_seconds=0.5, bytes=200_000, pages=5, objects=50)


@pytest.fixture(scope="module")
def shared() -> Iterator[FakeAPI]:
    with fake_api() as made:
        yield made


@pytest.fixture
def api(shared: FakeAPI) -> FakeAPI:
    shared.faults.clear()
    shared.asked.clear()
    return shared


@pytest.fixture
def client(api: FakeAPI) -> Iterator[Client]:
    with Client(api.credentials, limits=LIMITS) as made:
        yield made


@pytest.mark.parametrize(
    "fault",
    [
        "garbage",
        "noise",
        "wrong_kind",
        "empty_object",
        "deep",
        "flood",
        "endless_headers",
        "gzip_bomb",
        "redirect",
    ],
)
def test_an_answer_that_cannot_be_believed_is_garbage(
    api: FakeAPI, client: Client, fault: str
) -> None:
    api.inject(fault, times=2)  # what is too large is asked for again, in smaller pages
    with pytest.raises(GarbageError):
        client.list("Namespace")
    api.faults.clear()
    assert client.list("Namespace").items == ()


@pytest.mark.parametrize("fault", ["stall", "drip", "reset", "truncated"])
def test_an_answer_that_does_not_come_is_not_waited_for(
    api: FakeAPI, client: Client, fault: str
) -> None:
    api.inject(fault)
    began = time.monotonic()
    with pytest.raises(UnreachableError):
        client.list("Namespace")
    # Half of what the server would stall for: a busy machine adds seconds to ours, never so many.
    assert time.monotonic() - began < STALL / 2
    assert client.list("Namespace").items == ()


def test_a_list_without_an_end_is_given_up(api: FakeAPI, client: Client) -> None:
    api.inject("endless", times=1000)
    with pytest.raises(GarbageError):
        client.list("Namespace")
    assert len(api.asked) == LIMITS.pages


def test_objects_too_large_for_one_answer_are_listed_few_at_a_time(
    api: FakeAPI, client: Client
) -> None:
    for number in range(30):
        annotations = {"example.com/long": "x" * 9_000}
        metadata = {"name": f"n{number}", "annotations": annotations}
        api.store.put({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    found = client.list("Namespace").items
    api.store.objects.clear()
    assert (len(found), len(api.asked)) == (30, 3)


def test_a_list_of_too_many_objects_is_given_up(api: FakeAPI, client: Client) -> None:
    for number in range(LIMITS.objects + 1):
        metadata = {"name": f"n{number}"}
        api.store.put({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    with pytest.raises(GarbageError):
        client.list("Namespace", page=20)
    api.store.objects.clear()


def test_a_busy_server_says_when_to_come_back(api: FakeAPI, client: Client) -> None:
    api.inject("status-429")
    with pytest.raises(BusyError) as caught:
        client.version()
    assert caught.value.retry_after == 1.0
    assert caught.value.is_transient


def test_nobody_listening_is_unreachable() -> None:
    with (
        Client(Credentials(f"https://127.0.0.1:{free_port()}"), limits=LIMITS) as client,
        pytest.raises(UnreachableError),
    ):
        client.version()


def test_a_certificate_of_somebody_else_is_not_trusted(api: FakeAPI) -> None:
    with (
        Client(replace(api.credentials, ca=None), limits=LIMITS) as client,
        pytest.raises(UntrustedError),
    ):
        client.version()
    assert not api.asked


def test_the_certificate_must_bear_the_name(api: FakeAPI) -> None:
    with (
        Client(replace(api.credentials, tls_server_name="other"), limits=LIMITS) as client,
        pytest.raises(UntrustedError),
    ):
        client.version()
    with Client(replace(api.credentials, tls_server_name="kubernetes"), limits=LIMITS) as client:
        assert client.version()


@pytest.mark.parametrize("field", ["ca", "certificate"])
def test_unreadable_certificates_are_reported(api: FakeAPI, field: str) -> None:
    with pytest.raises(UntrustedError):
        Client(replace(api.credentials, **{field: b"-----BEGIN NOTHING-----"}))


def test_this_machine_is_out_of_bounds_unless_it_is_listed(
    api: FakeAPI, settings: SettingsWrapper
) -> None:
    settings.GATEHOUSE_CLUSTER_ADDRESSES = [ip_network("10.0.0.0/8")]
    with Client(api.credentials, limits=LIMITS) as client, pytest.raises(RefusedAddressError):
        client.version()
    assert not api.asked


def test_a_name_that_nobody_knows_is_unreachable() -> None:
    with (
        Client(Credentials("https://no-such-host.invalid"), limits=LIMITS) as client,
        pytest.raises(UnreachableError) as caught,
    ):
        client.version()
    assert caught.value.reason == "Unresolved"


@pytest.mark.parametrize(
    ("address", "verdict"),
    [
        ("8.8.8.8", True),
        ("10.1.2.3", True),
        ("192.168.0.1", False),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("100.100.100.200", False),
        ("0.0.0.0", False),  # noqa: S104 - an address to refuse
        ("224.0.0.1", False),
        ("2606:4700::1", True),
        ("::1", False),
        ("fe80::1", False),
        ("fd00:ec2::254", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.1.2.3", True),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::a01:203", True),
        ("2002:7f00:1::", False),
    ],
)
def test_an_address_is_public_or_listed_and_never_a_clouds_own(
    address: str, *, verdict: bool
) -> None:
    listed = [ip_network("10.0.0.0/8")]
    assert is_allowed(ip_address(address), listed) is verdict


def test_what_is_never_allowed_cannot_be_listed() -> None:
    everything = [ip_network("0.0.0.0/0"), ip_network("::/0")]
    assert is_allowed(ip_address("127.0.0.1"), everything)
    assert not is_allowed(ip_address("169.254.169.254"), everything)
    assert not is_allowed(ip_address("fe80::1"), everything)


def test_error_message_is_bounded_and_has_no_control_characters() -> None:
    error = error_from({"message": "a\x1b[31m\n" + "x" * 10_000, "reason": 7, "details": []}, 403)
    assert error.message.isprintable()
    assert len(error.message) <= 2_000
    assert error.causes == []


@pytest.mark.parametrize("text", [b"", b"[]", b"1", b'"a"', b'{"a": NaN}', b'{"a": "\xff"}'])
def test_only_json_objects_are_answers(text: bytes) -> None:
    with pytest.raises(GarbageError):
        decode(text)


LIMIT_RANGE = KINDS["LimitRange"]
PROPER = {"name": "l", "namespace": "n", "uid": "u", "resourceVersion": "7"}


@pytest.mark.parametrize(
    "broken",
    [
        {"name": "../x"},
        {"name": 7},
        {"namespace": ""},
        {"namespace": "a/b"},
        {"labels": ["a"]},
        {"annotations": {"a": 1}},
        {"uid": 7},
        {"resourceVersion": "9" * 101},
    ],
)
def test_an_object_without_its_proper_metadata_is_garbage(broken: dict[str, object]) -> None:
    assert checked_object({"metadata": PROPER}, LIMIT_RANGE)["kind"] == "LimitRange"
    with pytest.raises(GarbageError):
        checked_object({"metadata": {**PROPER, **broken}}, LIMIT_RANGE)


@pytest.mark.parametrize(
    "page",
    [
        {"metadata": {}},
        {"items": {}, "metadata": {"resourceVersion": "1"}},
        {"metadata": {"resourceVersion": "1", "continue": 7}},
        {"metadata": {"resourceVersion": ""}},
        {"metadata": {"resourceVersion": "1"}, "items": [{"kind": "Secret"}]},
        {"metadata": None},
    ],
)
def test_a_page_that_is_no_page_of_the_kind_is_garbage(page: dict[str, object]) -> None:
    with pytest.raises(GarbageError):
        checked_page({"kind": "LimitRangeList", **page}, LIMIT_RANGE)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "ADDED"}',
        b'{"type": "WHATEVER", "object": {}}',
        b'{"type": "BOOKMARK", "object": {"metadata": {}}}',
        b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "1"}}}',
    ],
)
def test_an_event_that_is_none_is_garbage(line: bytes) -> None:
    with pytest.raises(GarbageError):
        checked_event(line, LIMIT_RANGE)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        ({"reason": "AlreadyExists"}, 409, AlreadyExistsError),
        ({"reason": "Expired"}, 400, ExpiredError),
        ({}, 504, BusyError),
        ({}, 418, APIError),
        ({"message": "failed to convert new object (a/b)"}, 500, InvalidError),
        ({"details": {"causes": [{"reason": "FieldManagerConflict"}]}}, 409, FieldConflictError),
    ],
)
def test_a_status_is_the_error_it_says(
    status: dict[str, object], code: int, expected: type[APIError]
) -> None:
    error = error_from(status, code)
    assert type(error) is expected
    assert error.code == code


@pytest.mark.parametrize(
    ("given", "wait"),
    [(3, 3.0), (-1, 0.0), (10**9, 3600.0), ("3", None), (True, None), (None, None)],
)
def test_a_wait_is_bounded(given: object, wait: float | None) -> None:
    error = error_from({"details": {"retryAfterSeconds": given}}, 503)
    assert isinstance(error, BusyError)
    assert error.retry_after == wait


@pytest.mark.parametrize(("fault", "reason"), [("empty_object", "Garbage"), ("garbage", "Garbage")])
def test_a_version_and_a_permission_must_be_answers(
    api: FakeAPI, client: Client, fault: str, reason: str
) -> None:
    api.inject(fault, times=2)
    with pytest.raises(GarbageError) as caught:
        client.version()
    assert caught.value.reason == reason
    with pytest.raises(GarbageError):
        client.can("get", "", "pods")


def test_nul_is_read_as_a_character_that_every_database_can_keep() -> None:
    text = rb'{"a\u0000": ["\u0000", {"b": "c\\u0000"}], "n": 1}'
    assert decode(text) == {"a\ufffd": ["\ufffd", {"b": "c\\u0000"}], "n": 1}
