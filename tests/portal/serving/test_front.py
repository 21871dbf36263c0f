"""Reviews are answered in the event loop as threads would answer them; all else goes to threads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from admission import writer
from admission.models import AuditEvent
from admission.wire.review import MAX_BODY
from policies import services, snapshot
from policies.models import Cluster
from portal import graceful_shutdown
from portal.serving import front as serving
from portal.serving.front import Front
from portal.serving.lean import LeanHandler
from tests.portal.serving.asgi import Exchange, answered, scope_of

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
def ask(secret: str) -> Callable[..., Exchange]:
    """Ask the front; headers with an empty value are left out, ``scope`` is for the call itself."""

    def call(
        body: bytes = BODY,
        *,
        path: str = PATH,
        goes_after: int | None = None,
        scope: dict[str, Any] | None = None,
        **headers: str,
    ) -> Exchange:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        known = {"authorization": f"Bearer {secret}", "user-agent": "kube", **names}
        made = scope_of(path, body, headers=known, **(scope or {}))
        return answered(Front(others), made, body, goes_after=goes_after)

    return call


def test_review_is_answered_and_on_record(ask: Callable[..., Exchange]) -> None:
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


def test_credential_may_be_in_the_path(ask: Callable[..., Exchange], secret: str) -> None:
    assert ask(path=f"/admission/demo/{secret}/mutate", authorization="").status == 200
    assert AuditEvent.objects.get().phase == "mutate"


def test_threads_answer_the_same(ask: Callable[..., Exchange]) -> None:
    def lean(body: bytes) -> Exchange:
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
        {"transfer_encoding": "chunked", "content_length": ""},
        {"content_encoding": "gzip"},
        {"content_length": ""},
    ],
)
def test_what_is_unusual_is_left_to_threads(
    ask: Callable[..., Exchange], change: dict[str, Any]
) -> None:
    assert ask(**change).status == 299


@pytest.mark.parametrize("length", ["-1", "1000", str(MAX_BODY)], ids=["wrong", "short", "large"])
def test_body_of_another_length_is_a_bad_request(ask: Callable[..., Exchange], length: str) -> None:
    found = ask(content_length=length)
    assert (found.status, json.loads(found.body)["code"]) == (400, 400)
    assert found.headers["connection"] == "close"


def test_plain_http_is_left_to_the_full_stack_where_it_redirects(
    ask: Callable[..., Exchange], settings: Any
) -> None:
    assert ask(scope={"scheme": "http"}).status == 200
    settings.SECURE_SSL_REDIRECT = True
    assert ask(scope={"scheme": "http"}).status == 299
    assert ask().status == 200


def test_no_review_is_decided_before_the_policies_are_loaded(ask: Callable[..., Exchange]) -> None:
    snapshot.forget()
    assert ask().status == 299


def test_what_is_too_long_for_a_credential_is_not_looked_at(
    ask: Callable[..., Exchange], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policies.models.WebhookCredential.digest_of", lambda _: 1 / 0)
    assert ask(authorization=f"Bearer {'x' * 513}").status == 299


def test_what_is_no_review_is_refused(ask: Callable[..., Exchange]) -> None:
    found = ask(b"{}")
    assert (found.status, json.loads(found.body)["reason"]) == (400, "BadRequest")
    assert found.headers["content-type"] == "application/json"


def test_unreadable_review_is_denied_by_its_uid(ask: Callable[..., Exchange]) -> None:
    request = {**REVIEW["request"], "operation": "GUESS"}  # type: ignore[dict-item]
    found = ask(json.dumps({**REVIEW, "request": request}).encode())
    response = json.loads(found.body)["response"]
    assert (response["uid"], response["status"]["code"]) == ("9f2c", 422)


def test_own_failure_is_an_answer(
    ask: Callable[..., Exchange], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("admission.decide.prepare", fail)
    found = ask()
    assert (found.status, json.loads(found.body)["reason"]) == (500, "InternalError")


def test_queue_that_is_full_is_a_503(ask: Callable[..., Exchange], settings: Any) -> None:
    settings.GATEHOUSE_QUEUE_LIMIT = 0
    assert ask().status == 503


def test_who_has_gone_is_answered_nothing(ask: Callable[..., Exchange]) -> None:
    assert ask(goes_after=0).status == 0
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("change", [{}, {"path": "/"}, {"path": "/livez", "body": b""}], ids=str)
def test_answers_end_their_connection_while_the_process_goes(
    ask: Callable[..., Exchange], monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    assert "connection" not in ask(**change).headers
    closing = graceful_shutdown.ShutdownState(is_closing=True)
    monkeypatch.setattr(graceful_shutdown, "state", closing)
    found = ask(**change)
    assert (found.status, found.headers["connection"]) == (200 if not change else 299, "close")


def test_refusal_of_a_process_that_goes_says_close_once(
    ask: Callable[..., Exchange], monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = graceful_shutdown.ShutdownState(is_closing=True)
    monkeypatch.setattr(graceful_shutdown, "state", closing)
    found = ask(scope={"raw_path": b"/admission%2fdemo/validate"})
    assert (found.status, found.pairs.count(("connection", "close"))) == (400, 1)


@pytest.mark.parametrize("path", [PATH, "/clusters/"])
def test_two_hosts_are_a_bad_request(secret: str, path: str) -> None:
    scope = scope_of(path, BODY, headers={"authorization": f"Bearer {secret}", "host": "one"})
    assert answered(Front(others), scope, BODY).status in (200, 299)
    scope["headers"].append((b"host", b"two"))
    assert answered(Front(others), scope, BODY).status == 400


@pytest.mark.parametrize("raw_path", [b"/admission/demo%2Fvalidate", b"/admission%2fdemo/validate"])
@pytest.mark.parametrize("path", [PATH, "/clusters/"])
def test_encoded_slash_is_a_bad_request(
    ask: Callable[..., Exchange], path: str, raw_path: bytes
) -> None:
    found = ask(path=path, scope={"raw_path": raw_path})
    assert (found.status, found.headers["connection"]) == (400, "close")
    assert not AuditEvent.objects.exists()


def test_probe_is_answered_beside_pages(ask: Callable[..., Exchange]) -> None:
    assert ask(b"", path="/livez", scope={"method": "GET"}).status == 299
    assert ask(path="/livez").status == 413


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The items whose callers waited for their commit."""
    found: list[Any] = []
    outcome = writer.Waiters.outcome

    async def wait(waiters: writer.Waiters, item: Any) -> Any:
        found.append(item)
        return await outcome(waiters, item)

    monkeypatch.setattr(writer.Waiters, "outcome", wait)
    monkeypatch.setattr(writer.Waiters, "may_queue", True)
    return found


@pytest.mark.parametrize(
    "case",
    [
        ("/admission/demo/mutate", "queued", True),
        ("/admission/demo/mutate", "durable", False),
        (PATH, "queued", False),
    ],
)
def test_mutation_is_answered_before_its_commit_where_a_setting_says_so(
    ask: Callable[..., Exchange], settings: Any, waited: list[Any], case: Any
) -> None:
    path, settings.GATEHOUSE_RECORD_MUTATIONS, is_early = case
    response = json.loads(ask(path=path).body)["response"]
    writer.stop()  # writes what is queued
    assert response["allowed"] is True
    assert AuditEvent.objects.get().id == response["auditAnnotations"]["decision-id"]
    assert bool(waited) is not is_early


def test_mutation_waits_while_rows_are_late(
    ask: Callable[..., Exchange], settings: Any, waited: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GATEHOUSE_RECORD_MUTATIONS = "queued"
    monkeypatch.setattr(writer.Waiters, "may_queue", False)
    assert ask(path="/admission/demo/mutate").status == 200
    assert waited
