"""How much body an address takes is known before a byte is read, and follows who sends it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from admission.wire.review import MAX_BODY
from policies import services, snapshot
from policies.models import Cluster
from portal.serving.bounds import SHORT, bound_of
from portal.serving.request_head import RequestHead

if TYPE_CHECKING:
    from portal.serving.bodies import BodyLimit

pytestmark = pytest.mark.django_db(transaction=True)
LARGE = 9 * 1024 * 1024
PATH = "/admission/demo/validate"


def found(path: str, *headers: tuple[str, str], method: str = "POST") -> BodyLimit | None:
    """The limit of a call, with queries in this thread."""

    async def in_thread(function: Any, *words: Any) -> bool:
        return bool(await asyncio.to_thread(function, *words))

    pairs = {name.encode(): value.encode() for name, value in headers}
    head = RequestHead(method, path, pairs, is_plain=True)
    return asyncio.run(bound_of(head, in_thread))


def most(path: str, *headers: tuple[str, str]) -> int:
    bound = found(path, ("content-length", "5"), *headers)
    return bound.most if bound else 0


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(name="demo")
    services.save_cluster(cluster=made, user="root")
    snapshot.refresh()
    return made


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (("accept", "*/*"), SHORT),
        (("cookie", "csrftoken=a"), SHORT),
        (("cookie", "a=1; sessionid=b"), LARGE),
        (("authorization", "Token one"), LARGE),
    ],
    ids=["nobody", "no session", "session", "token"],
)
def test_strangers_may_send_little(header: tuple[str, str], expected: int) -> None:
    assert most("/clusters/", header) == expected
    assert found("/clusters/", ("transfer-encoding", "chunked"), header) is not None
    for path in ("/accounts/login/", "/admin/login/", "/api/v1/token/"):
        assert most(path, header) == SHORT


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_body_without_a_meaning_is_not_read(method: str) -> None:
    assert found("/", ("content-length", "5"), method=method) is None
    assert found("/") is None


def test_body_of_a_review_is_read_for_a_cluster_alone(cluster: Cluster) -> None:
    secret = services.issue_webhook_credential(cluster=cluster, label="a", user="root")[1]
    snapshot.refresh()
    length, known = ("content-length", "5"), ("authorization", f"Bearer {secret}")
    bound = found(PATH, length, known)
    assert bound
    assert (bound.kept, bound.is_known) == (MAX_BODY + 1, True)
    assert found(f"/admission/demo/{secret}/mutate", length) == bound
    for headers in (
        [length],
        [length, ("authorization", "Bearer guess")],
        [length, known, ("content-encoding", "gzip")],
        [("transfer-encoding", "chunked"), known],
    ):
        assert found(PATH, *headers) is None
    assert found(PATH, length, known, method="PUT") is None


def test_credential_that_is_new_is_looked_for_in_the_database(cluster: Cluster) -> None:
    secret = services.issue_webhook_credential(cluster=cluster, label="a", user="root")[1]
    assert most(PATH, ("authorization", f"Bearer {secret}")) > MAX_BODY


def test_nobody_is_a_cluster_while_the_database_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError

    monkeypatch.setattr("admission.api.authentication.is_callers", fail)
    assert most(PATH, ("authorization", "Bearer guess")) == 0
