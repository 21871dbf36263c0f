"""All or nothing: no answer without a record, no charge without both."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection

from admission.api.respond import budget
from admission.decide import DEFAULT_BUDGET, Call, OverBudgetError, decide
from admission.models import AuditEvent
from admission.record import write
from admission.wire.review import parse_request
from admission.writer import failpoints
from engine import chain
from engine.request import Phase
from policies import services, snapshot
from policies.models import LedgerEntry, WebhookCredential
from tests.builders import container, pod
from tests.reviews import new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


@pytest.fixture
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A record that cannot be written, for a reason; the status that this is answered with."""
    if request.param == "defect":
        monkeypatch.setattr(failpoints, "armed", failpoints.read("before-audit:raise"))
        return 500
    execute, table = write.execute, AuditEvent._meta.db_table
    monkeypatch.setattr(
        write, "execute", lambda text, rows: execute(text.replace(table, "nowhere"), rows)
    )
    return 503


@pytest.mark.parametrize("broken", ["database", "defect"], indirect=True)
def test_without_a_record_there_is_no_answer_and_no_charge(
    broken: int, ask: Callable[..., Any], apply: Callable[..., None], used: Callable[[], str]
) -> None:
    apply(quota())
    response = ask(review(new_pod()))
    assert response.status_code == broken
    assert response.json()["status"] == "Failure"
    assert "nowhere" not in response.content.decode()
    assert used() == "0"


def test_the_journal_of_the_ledger_names_the_decision(
    ask: Callable[..., Any], apply: Callable[..., None]
) -> None:
    apply(quota())
    sized = {"cpu": "500m", "memory": "500Mi"}
    made = new_pod("p", container(requests=sized, limits=sized))
    assert ask(review(made)).json()["response"]["allowed"]
    [entry] = LedgerEntry.objects.all()
    assert (entry.action, entry.cause) == ("charge", "admission")
    assert entry.reference == AuditEvent.objects.get().pk
    assert (entry.object_uid, entry.after["pods"]) == (made["metadata"]["uid"], "1")


@pytest.mark.parametrize("function", ["current", "refresh"])
def test_policies_that_cannot_be_read_are_no_free_pass(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def fail() -> None:
        raise OperationalError("connection lost")

    monkeypatch.setattr(snapshot, function, fail)
    secret = "" if function == "current" else "Bearer unknown"
    assert ask(review(), **({"Authorization": secret} if secret else {})).status_code == 503
    assert AuditEvent.objects.count() == 0


def test_policies_are_read_again_when_written_meanwhile(
    ask: Callable[..., Any], apply: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, seen = chain.prepare, []

    def write_meanwhile(request: Any, policies: Any, **kwargs: Any) -> Any:
        seen.append(policies)
        if len(seen) == 1:
            apply(quota(hard={"pods": "0"}))
        return prepare(request, policies, **kwargs)

    monkeypatch.setattr(chain, "prepare", write_meanwhile)
    assert ask(review(new_pod())).json()["response"]["allowed"] is False
    assert [len(policies.resource_quotas) for policies in seen] == [0, 1]
    assert AuditEvent.objects.get().policy_revision == snapshot.revision("demo") > 0


def test_a_credential_that_is_revoked_meanwhile_is_refused(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = chain.prepare

    def revoke_meanwhile(*args: Any, **kwargs: Any) -> Any:
        for credential in WebhookCredential.objects.filter(revoked=None):
            services.revoke_webhook_credential(credential=credential, user="root")
        return prepare(*args, **kwargs)

    monkeypatch.setattr(chain, "prepare", revoke_meanwhile)
    assert ask(review()).status_code == 401
    assert AuditEvent.objects.count() == 0


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("timeout=10s", 9),
        ("timeout=2s", 1),
        ("a=b&timeout=1s", 0.5),
        ("timeout=0s&a=b", 0.5),
        ("timeout=30s", 29),
        ("timeout=9999s", 29),
        ("", DEFAULT_BUDGET),
        ("timeout=", DEFAULT_BUDGET),
        ("timeout=soon", DEFAULT_BUDGET),
        ("timeout=-5s", DEFAULT_BUDGET),
        ("notimeout=2s", DEFAULT_BUDGET),
    ],
)
def test_the_budget_is_a_second_less_than_the_caller_waits(query: str, seconds: float) -> None:
    assert budget(query) == seconds


def test_a_spent_budget_starts_nothing(ask: Callable[..., Any]) -> None:
    long_ago = time.monotonic_ns() - 10**9
    call = Call(cluster="demo", phase=Phase.VALIDATE, client="", started=long_ago, budget=0.5)
    with pytest.raises(OverBudgetError):
        decide(parse_request(json.dumps(review()).encode()), call=call)
    assert AuditEvent.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_locked_database_is_unavailable_in_time(ask: Callable[..., Any]) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("SQLite has one lock for the whole database")
    holder = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert ask(review(), query="?timeout=1s").status_code == 503
    finally:
        holder.rollback()
        holder.close()
    assert ask(review()).status_code == 200


def test_an_update_charges_the_difference(
    ask: Callable[..., Any], apply: Callable[..., None], used: Callable[..., str]
) -> None:
    apply(quota(hard={"requests.cpu": "2"}))
    old = new_pod("p", container(requests={"cpu": "1"}))
    old["metadata"]["resourceVersion"] = "1"
    new = {**old, "spec": {"containers": [container(requests={"cpu": "1500m"})]}}
    ask(review(old))
    change = review(new, operation="UPDATE", oldObject=old, subResource="resize")
    assert ask(change).json()["response"]["allowed"] is True
    assert used("pods", "requests.cpu") == "1500m"
    assert ask(change).json()["response"]["allowed"] is True
    assert used("pods", "requests.cpu") == "1500m"


def test_a_pod_without_uid_is_charged_by_its_request(
    ask: Callable[..., Any], apply: Callable[..., None], used: Callable[[], str]
) -> None:
    apply(quota())
    assert ask(review(pod())).json()["response"]["allowed"] is True
    assert used() == "1"
