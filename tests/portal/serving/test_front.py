"""Reviews are answered in the event loop as threads would answer them; all else goes to threads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from granian.rsgi import ProtocolClosed

from admission.models import AuditEvent
from admission.wire.review import MAX_BODY
from policies import services, snapshot
from policies.models import Cluster
from portal import graceful_shutdown
from portal.serving import front as serving
from portal.serving.front import Front
from portal.serving.lean import LeanHandler
from tests.portal.serving.rsgi import Protocol, answered, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "9f2c",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "settings",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "kim"},
        "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}},
    },
}
BODY = json.dumps(REVIEW).encode()
PATH = "/admission/demo/validate"


def others(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("299 Others", [])
    return [environ["wsgi.input"].read()]


@pytest.fixture
def secret() -> str:
    """A credential that this process knows of."""
    cluster = Cluster(name="demo")
    services.save_cluster(cluster=cluster, user="root")
    made = services.issue_webhook_credential(cluster=cluster, label="hook", user="root")[1]
    snapshot.refresh()
    return made


@pytest.fixture
def ask(secret: str) -> Callable[..., Protocol]:
    """Ask the front; headers with an empty value are left out, ``scope`` is for the call itself."""

    def call(
        body: bytes = BODY,
        *,
        path: str = PATH,
        error: Exception | None = None,
        scope: dict[str, Any] | None = None,
        **headers: str,
    ) -> Protocol:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        known = {"authorization": f"Bearer {secret}", "user-agent": "kube", **names}
        made = scope_of(path, body, headers=known, **(scope or {}))
        return answered(Front(others), made, body, error=error)

    return call


def test_review_is_answered_and_on_record(ask: Callable[..., Protocol]) -> None:
    found = ask(x_request_id="mine-1")
    response = json.loads(found.body)["response"]
    assert (found.status, response["uid"], response["allowed"]) == (200, "9f2c", True)
    assert found.headers == {
        "content-type": "application/json",
        "cache-control": "no-store",
        "x-request-id": "mine-1",
    }
    event = AuditEvent.objects.get()
    assert (event.cluster, event.client) == ("demo", "127.0.0.1 kube")
    assert event.id == response["auditAnnotations"]["decision-id"]


def test_credential_may_be_in_the_path(ask: Callable[..., Protocol], secret: str) -> None:
    assert ask(path=f"/admission/demo/{secret}/mutate", authorization="").status == 200
    assert AuditEvent.objects.get().phase == "mutate"


def test_threads_answer_the_same(ask: Callable[..., Protocol]) -> None:
    def lean(body: bytes) -> Protocol:
        made = scope_of(PATH, body, headers=dict(ask_headers))
        return answered(Front(LeanHandler(others)), made, body)

    ask_headers = {"authorization": f"Bearer {_secret_of(ask)}", "user-agent": "kube"}
    padded = BODY + b" " * serving.LONGEST
    for found in (lean(BODY), lean(padded)):
        assert found.status == 200
        assert json.loads(found.body)["response"]["allowed"] is True
    kept = {(event.client, event.verdict) for event in AuditEvent.objects.all()}
    assert kept == {("127.0.0.1 kube", "allowed")}


def _secret_of(_ask: Any) -> str:
    cluster = Cluster.objects.get(name="demo")
    made = services.issue_webhook_credential(cluster=cluster, label="two", user="root")[1]
    snapshot.refresh()
    return made


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/"},
        {"path": "/admission/demo/other"},
        {"scope": {"method": "GET"}},
        {"authorization": ""},
        {"authorization": "Bearer guess"},
        {"transfer_encoding": "chunked"},
        {"content_encoding": "gzip"},
        {"content_length": ""},
    ],
)
def test_what_is_unusual_is_left_to_threads(
    ask: Callable[..., Protocol], change: dict[str, Any]
) -> None:
    assert ask(**change).status == 299


@pytest.mark.parametrize("length", ["-1", "1000", str(MAX_BODY)], ids=["wrong", "short", "large"])
def test_body_of_another_length_is_a_bad_request(ask: Callable[..., Protocol], length: str) -> None:
    found = ask(content_length=length)
    assert (found.status, json.loads(found.body)["code"]) == (400, 400)
    assert found.headers["connection"] == "close"


def test_plain_http_is_left_to_the_full_stack_where_it_redirects(
    ask: Callable[..., Protocol], settings: Any
) -> None:
    assert ask(scope={"scheme": "http"}).status == 200
    settings.SECURE_SSL_REDIRECT = True
    assert ask(scope={"scheme": "http"}).status == 299
    assert ask().status == 200


def test_no_review_is_decided_before_the_policies_are_loaded(ask: Callable[..., Protocol]) -> None:
    snapshot.forget()
    assert ask().status == 299


def test_what_is_too_long_for_a_credential_is_not_looked_at(
    ask: Callable[..., Protocol], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policies.models.WebhookCredential.digest_of", lambda _: 1 / 0)
    assert ask(authorization=f"Bearer {'x' * 513}").status == 299


def test_what_is_no_review_is_refused(ask: Callable[..., Protocol]) -> None:
    found = ask(b"{}")
    assert (found.status, json.loads(found.body)["reason"]) == (400, "BadRequest")
    assert found.headers["content-type"] == "application/json"


def test_unreadable_review_is_denied_by_its_uid(ask: Callable[..., Protocol]) -> None:
    request = {**REVIEW["request"], "operation": "GUESS"}  # type: ignore[dict-item]
    found = ask(json.dumps({**REVIEW, "request": request}).encode())
    response = json.loads(found.body)["response"]
    assert (response["uid"], response["status"]["code"]) == ("9f2c", 422)


def test_own_failure_is_an_answer(
    ask: Callable[..., Protocol], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("admission.decide.prepare", fail)
    found = ask()
    assert (found.status, json.loads(found.body)["reason"]) == (500, "InternalError")


def test_queue_that_is_full_is_a_503(ask: Callable[..., Protocol], settings: Any) -> None:
    settings.GATEHOUSE_QUEUE_LIMIT = 0
    assert ask().status == 503


def test_who_has_gone_is_answered_nothing(ask: Callable[..., Protocol]) -> None:
    assert ask(error=ProtocolClosed()).status == 0


def test_answers_end_their_connection_while_the_process_goes(
    ask: Callable[..., Protocol], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        graceful_shutdown, "state", graceful_shutdown.ShutdownState(is_closing=True)
    )
    assert ask().headers["connection"] == "close"
