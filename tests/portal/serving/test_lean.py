"""The lean stack answers an API server as the full one does, only with fewer headers."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from django.core.signals import request_finished, request_started
from django.test import RequestFactory
from django.test.client import Client

from portal.serving.lean import LeanHandler, LeanRequest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db
REVIEW = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}'


def environ(path: str, body: bytes = REVIEW, **more: str) -> dict[str, Any]:
    made = RequestFactory().post(path, body, content_type="application/json", **more)  # type: ignore[arg-type]
    return made.environ  # type: ignore[no-any-return]


def call(
    application: Callable[..., Any], path: str, body: bytes = REVIEW, **more: str
) -> tuple[str, dict[str, str], bytes]:
    started: list[Any] = []
    answer = application(environ(path, body, **more), lambda *words: started.append(words))
    status, headers = started[0]
    return status, dict(headers), b"".join(answer)


def no_others(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("299 Others", [])
    return [environ["PATH_INFO"].encode()]


@pytest.mark.parametrize("path", ["/admission/demo/validate", "/admission/demo/key/mutate"])
def test_both_stacks_answer_a_stranger_alike(path: str) -> None:
    status, headers, body = call(LeanHandler(no_others), path)
    full = Client().post(path, REVIEW, content_type="application/json")
    assert (status, body) == (f"{full.status_code} {full.reason_phrase}", full.content)
    for name in ("Content-Type", "Cache-Control", "WWW-Authenticate"):
        assert headers[name] == full[name]
    assert full["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    "path", ["/", "/admission/", "/admission/demo/other", "/decisions/", "/admission/ü/mutate"]
)
def test_other_addresses_are_passed_on(path: str) -> None:
    assert call(LeanHandler(no_others), path)[0] == "299 Others"


def test_plain_http_is_left_to_the_full_stack_where_it_redirects(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    handler, path = LeanHandler(no_others), "/admission/demo/validate"
    assert call(handler, path)[0] == "299 Others"
    assert call(handler, path, **{"wsgi.url_scheme": "https"})[0] == "401 Unauthorized"


def test_request_id_of_the_caller_comes_back() -> None:
    answer = call(LeanHandler(no_others), "/admission/demo/validate", HTTP_X_REQUEST_ID="mine-1")
    assert answer[1]["X-Request-Id"] == "mine-1"


def test_no_signal_is_sent() -> None:
    seen: list[Any] = []

    def note(**words: Any) -> None:
        seen.append(words["signal"])

    for signal in (request_started, request_finished):
        signal.connect(note)
    call(LeanHandler(no_others), "/admission/demo/validate")
    for signal in (request_started, request_finished):
        assert signal.disconnect(note)
    assert seen == []


def test_failure_of_a_view_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("portal.serving.lean.call_view", fail)
    assert call(LeanHandler(no_others), "/admission/demo/validate")[0].startswith("500")


@pytest.mark.parametrize(("length", "expected"), [("3", b"abc"), ("", b""), ("no", b"")])
def test_body_is_read_as_far_as_was_promised(length: str, expected: bytes) -> None:
    made = {**environ("/admission/demo/validate"), "CONTENT_LENGTH": length}
    assert LeanRequest({**made, "wsgi.input": io.BytesIO(b"abcdef")}).read() == expected
