"""Bodies that are no ordinary reviews: large, deep, compressed, broken, hostile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent
from admission.wire.review import MAX_BODY
from tests.builders import container
from tests.reviews import new_pod, review

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db
HEAD = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1",'


def padded(size: int) -> bytes:
    asked = review(new_pod())
    asked["request"]["uid"] = "u-1"
    asked["request"]["object"]["metadata"]["annotations"] = {"pad": ""}
    text = json.dumps(asked, separators=(",", ":"))
    return text.replace('"pad":""', '"pad":"' + "x" * (size - len(text)) + '"').encode()


def test_three_mebibytes_are_decided(ask: Callable[..., Any]) -> None:
    answer = ask(padded(3 * 1024 * 1024)).json()["response"]
    assert (answer["uid"], answer["allowed"]) == ("u-1", True)


@pytest.mark.parametrize("size", [MAX_BODY + 1, 20 * 1024 * 1024], ids=["8MiB+1", "20MiB"])
def test_a_larger_review_is_denied_with_its_uid(ask: Callable[..., Any], size: int) -> None:
    response = ask(HEAD + b'"object":"' + b"x" * (size - len(HEAD)))
    answer = response.json()["response"]
    assert (response.status_code, answer["uid"], answer["allowed"]) == (200, "u-1", False)
    assert answer["status"]["code"] == 413
    assert AuditEvent.objects.get().request_uid == "u-1"


def test_the_largest_allowed_body_is_read(ask: Callable[..., Any]) -> None:
    assert ask(padded(MAX_BODY)).json()["response"]["allowed"] is True


@pytest.mark.parametrize("depth", [999, 1000, 9000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_answered_as_a_review(
    ask: Callable[..., Any], depth: int, opening: bytes, closing: bytes
) -> None:
    deep = opening * depth + b"1" + closing * depth
    response = ask(HEAD + b'"object":{"spec":' + deep + b"}}}")
    assert response.status_code == 200
    assert response.json()["response"]["uid"] == "u-1"


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"{", b'{"request":{}}', b'{"request":{"uid":1}}'],
)
def test_what_is_no_review_is_a_bad_request(ask: Callable[..., Any], body: bytes) -> None:
    response = ask(body)
    assert response.status_code == 400
    assert response.json()["reason"] == "BadRequest"
    assert AuditEvent.objects.count() == 0


def test_a_compressed_body_is_not_unpacked(ask: Callable[..., Any]) -> None:
    response = ask(review(), **{"Content-Encoding": "gzip"})
    assert response.status_code == 415


def test_a_body_of_unknown_length_is_refused(ask: Callable[..., Any]) -> None:
    assert ask(review(), **{"Transfer-Encoding": "chunked"}).status_code == 411


def test_a_repeated_key_is_denied_not_guessed(ask: Callable[..., Any]) -> None:
    answer = ask(HEAD + b'"namespace":"a","namespace":"b"}}').json()["response"]
    assert (answer["uid"], answer["allowed"]) == ("u-1", False)
    assert answer["status"]["code"] == 400


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "␛0000"], ids=["nul", "surrogate", "escape"])
def test_hostile_texts_are_answered_and_kept(ask: Callable[..., Any], text: str) -> None:
    made = new_pod("p", container(), labels={"team": text}, annotations={text: text})
    made["metadata"].update(labels={"team": text}, annotations={text: text})
    made["spec"]["containers"][0]["env"] = [{"name": text, "value": "hunter2"}]
    asked = review(made, userInfo={"username": text, "groups": [text]})
    answer = ask(asked)
    assert (answer.status_code, answer.json()["response"]["uid"]) == (200, asked["request"]["uid"])
    event = AuditEvent.objects.get()
    assert "hunter2" not in json.dumps(event.request)


@pytest.mark.parametrize("kind", ["Pod", "LimitRange"], ids=str.lower)
def test_hostile_kinds_are_answered_and_kept(ask: Callable[..., Any], kind: str) -> None:
    for text in ("\ud800", "a\x00", "␛"):
        named = {"group": text, "version": text, "kind": f"{text}{kind}"}
        policies = {"group": "", "version": "v1", "resource": "limitranges"}
        asked = review(new_pod(), kind=named, **({"resource": policies} if kind != "Pod" else {}))
        assert ask(asked).status_code == 200
    assert AuditEvent.objects.count() == 3


def test_a_uid_is_found_though_bytes_are_no_text(ask: Callable[..., Any]) -> None:
    asked = review(new_pod(), userInfo={"username": "@", "extra": {"x" * 5000: ["y"]}})
    request = asked["request"]
    request["uid"] = request.pop("uid")  # behind all else, beyond what is searched for it
    answer = ask(json.dumps(asked).encode().replace(b"@", b"\xff")).json()["response"]
    assert (answer["uid"], answer["status"]["code"]) == (request["uid"], 400)


@pytest.mark.parametrize("field", ["namespace", "name"])
@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x" * 500], ids=["nul", "surrogate", "long"])
def test_impossible_names_are_denied(ask: Callable[..., Any], field: str, text: str) -> None:
    answer = ask(review(**{field: text})).json()["response"]
    assert (answer["allowed"], answer["status"]["code"]) == (False, 422)
    assert AuditEvent.objects.get().verdict == "denied"


def test_an_impossible_object_uid_is_denied(ask: Callable[..., Any]) -> None:
    made = new_pod()
    made["metadata"]["uid"] = "u" * 129
    answer = ask(review(made)).json()["response"]
    assert answer["status"]["code"] == 422


@pytest.mark.parametrize(
    "amount", ["1e999999", "9" * 5000, "NaN", "-1", "0x1", "1E", "\u0661", "1" * 64 + "Ki"]
)
def test_absurd_quantities_are_answered(ask: Callable[..., Any], amount: str) -> None:
    made = new_pod("p", container(requests={"cpu": amount}))
    response = ask(review(made))
    assert response.status_code == 200


@pytest.mark.parametrize("number", [b"1e999999999", b"9" * 5000, b"-0.0", b"1E400"])
def test_absurd_numbers_are_answered(ask: Callable[..., Any], number: bytes) -> None:
    body = json.dumps(review(new_pod("p", container(requests={"cpu": "@"})))).encode()
    assert ask(body.replace(b'"@"', number)).status_code == 200


def test_v1beta1_is_denied_by_name(ask: Callable[..., Any]) -> None:
    answer = ask({**review(), "apiVersion": "admission.k8s.io/v1beta1"}).json()["response"]
    assert answer["status"]["code"] == 400
    assert "admission.k8s.io/v1" in answer["status"]["message"]


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_deletion_and_connection_pass(ask: Callable[..., Any], operation: str) -> None:
    made = new_pod()
    asked = review(made, operation=operation, oldObject=made if operation == "DELETE" else None)
    asked["request"]["object"] = None if operation == "DELETE" else {"kind": "PodExecOptions"}
    assert ask(asked).json()["response"]["allowed"] is True
