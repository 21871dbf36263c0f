"""What is compressed: pages, the API and exports for who accepts it; no review, probe or metric."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import RequestFactory

from portal.serving.lean import LeanHandler
from tests import factories, people
from tests.builders import container
from tests.reviews import new_pod, review

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
GZIP = {"Accept-Encoding": "gzip, br"}
LONG = (
    "/", "/accounts/password_change/", "/api/v1/limitranges/", "/api/v1/limitranges/?clutser=prod",
    "/decisions/export.csv", "/decisions/export.jsonl", "/decisions/", "/api/schema/?format=json",
)  # fmt: skip
EXPORTS = ("/decisions/export.csv", "/decisions/export.jsonl")


@pytest.fixture
def secret() -> str:
    """The credential of a cluster whose pods may use one CPU."""
    factories.limit_range({"type": "Container", "max": {"cpu": "1"}}, name="limits", namespace="ns")
    return factories.webhook_secret()


def refused(secret: str, name: str = "big") -> dict[str, Any]:
    """The arguments of a request that posts a review of a pod with two CPUs."""
    return {
        "path": "/admission/prod/validate",
        "data": json.dumps(review(new_pod(name, container(limits={"cpu": "2"})))),
        "content_type": "application/json",
        "headers": {"Authorization": f"Bearer {secret}", **GZIP},
    }


@pytest.fixture
def reader(client: Client, secret: str) -> Client:
    """Somebody signed in, with some decisions to see."""
    for number in range(30):
        client.post(**refused(secret, f"big-{number}"))
    client.force_login(people.person("reader"))
    return client


def body_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def decompressed(answer: Any) -> bytes:
    assert answer.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(body_of(answer))


@pytest.mark.parametrize("address", LONG)
def test_who_accepts_gzip_gets_it(reader: Client, address: str) -> None:
    answer = reader.get(address, headers=GZIP)
    assert "Accept-Encoding" in answer["Vary"]
    sent = body_of(answer)
    assert answer.headers.get("Content-Encoding") == "gzip"
    assert len(gzip.decompress(sent)) > len(sent)


@pytest.mark.parametrize("address", LONG)
@pytest.mark.parametrize("accepted", [None, "identity", "br"])
def test_who_does_not_accept_it_gets_the_plain_text(
    reader: Client, address: str, accepted: str | None
) -> None:
    answer = reader.get(address, headers={"Accept-Encoding": accepted} if accepted else {})
    assert "Content-Encoding" not in answer.headers
    body_of(answer).decode()


@pytest.mark.parametrize("address", [*EXPORTS, "/api/v1/limitranges/"])
def test_both_forms_have_the_same_content(reader: Client, address: str) -> None:
    plain = body_of(reader.get(address))
    assert len(plain) > 200
    assert decompressed(reader.get(address, headers=GZIP)) == plain


@pytest.mark.parametrize("address", EXPORTS)
def test_exports_are_compressed_as_a_stream(reader: Client, address: str) -> None:
    answer = reader.get(address, headers=GZIP)
    assert answer.streaming
    assert "Content-Length" not in answer.headers
    assert decompressed(answer).count(b"\n") >= 30


def test_the_length_of_an_answer_says_little_about_its_content(reader: Client) -> None:
    # A secret that is guessed letter by letter would show in the length (BREACH).
    lengths = {len(reader.get("/api/v1/limitranges/", headers=GZIP).content) for _ in range(20)}
    assert len(lengths) > 1


@pytest.mark.parametrize("address", ["/livez", "/readyz?verbose", "/healthz?verbose", "/metrics"])
def test_probes_and_metrics_stay_plain(client: Client, address: str) -> None:
    answer = client.get(address, headers=GZIP)
    assert answer.status_code in (200, 503)
    assert "Content-Encoding" not in answer.headers


def test_reviews_are_answered_in_plain_json(secret: str) -> None:
    started: list[Any] = []
    handler = LeanHandler(lambda *_: pytest.fail("the full stack answers no review"))
    request = RequestFactory().post(**refused(secret))
    answer = b"".join(handler(request.environ, lambda *words: started.append(words)))
    [(status, headers)] = started
    assert (status, "Content-Encoding" in dict(headers)) == ("200 OK", False)
    assert len(answer) > 200
    assert json.loads(answer)["response"]["allowed"] is False
