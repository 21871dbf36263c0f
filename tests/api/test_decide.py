"""All or nothing: no answer without a record, no charge without both."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection

from admission import decide as decide_module
from admission.api.review import budget
from admission.decide import DEFAULT_BUDGET, Call, OverBudgetError
from admission.models import AuditEvent
from policies.engine.request import Phase
from tests.builders import container, pod
from tests.reviews import new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("failure", "status"),
    [(OperationalError("disk full"), 503), (RuntimeError("a defect"), 500)],
    ids=["database", "defect"],
)
def test_without_a_record_there_is_no_answer_and_no_charge(  # noqa: PLR0913 - fixtures
    *,
    ask: Callable[..., Any],
    apply: Callable[..., None],
    used: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
    status: int,
) -> None:
    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise failure

    apply(quota())
    monkeypatch.setattr(AuditEvent, "save", fail)
    response = ask(review(new_pod()))
    assert response.status_code == status
    assert response.json()["status"] == "Failure"
    assert str(failure) not in response.content.decode()
    assert used() == "0"


def test_a_failed_lookup_is_no_free_pass(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any) -> None:
        raise OperationalError("connection lost")

    monkeypatch.setattr("policies.policy_set.load", fail)
    assert ask(review()).status_code == 503
    assert AuditEvent.objects.count() == 0


def test_a_credential_that_cannot_be_checked_is_our_failure(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any) -> None:
        raise OperationalError("connection lost")

    monkeypatch.setattr("policies.policy_set.authenticate", fail)
    assert ask(review()).status_code == 503


def test_policies_are_read_again_when_written_meanwhile(
    ask: Callable[..., Any], apply: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    load = decide_module.policy_set.load
    loaded = []

    def write_meanwhile(cluster: str, namespace: str) -> Any:
        found = load(cluster, namespace)
        loaded.append(found)
        if len(loaded) == 1:
            apply(quota(hard={"pods": "0"}))
        return found

    monkeypatch.setattr(decide_module.policy_set, "load", write_meanwhile)
    assert ask(review(new_pod())).json()["response"]["allowed"] is False
    event = AuditEvent.objects.get()
    assert not loaded[0].resource_quotas
    assert loaded[-1].resource_quotas
    assert event.policy_revision == decide_module.policy_set.revision("demo") > 0


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [
        ("10s", 9),
        ("2s", 1),
        ("1s", 0.5),
        ("0s", 0.5),
        ("30s", 29),
        ("9999s", 29),
        ("", DEFAULT_BUDGET),
        ("soon", DEFAULT_BUDGET),
        ("-5s", DEFAULT_BUDGET),
    ],
)
def test_the_budget_is_a_second_less_than_the_caller_waits(timeout: str, seconds: float) -> None:
    assert budget(timeout) == seconds


def test_a_late_decision_is_rolled_back(
    ask: Callable[..., Any],
    apply: Callable[..., None],
    used: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apply(quota())
    started = decide_module.time.monotonic_ns
    record = decide_module.audit.record

    def slow(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(decide_module.time, "monotonic_ns", lambda: started() + 600_000_000)
        return record(*args, **kwargs)

    monkeypatch.setattr(decide_module.audit, "record", slow)
    assert ask(review(new_pod()), query="?timeout=1s").status_code == 503
    assert ask(review(new_pod()), query="?timeout=3s").status_code == 200
    assert (used(), AuditEvent.objects.count()) == ("1", 1)


def test_a_spent_budget_starts_nothing() -> None:
    call = Call(cluster="demo", phase=Phase.VALIDATE, client="", started=0, budget=0.1)
    assert call.remaining < 0
    with pytest.raises(OverBudgetError):
        call.check()


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
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        assert cursor.fetchone() == (20_000,)


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
