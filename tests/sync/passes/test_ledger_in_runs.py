"""The ledger as the last part of a run: its failures are reported and stop no policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from policies.models import LedgerPass
from sync.errors import (
    BusyError,
    GarbageError,
    UnauthorizedError,
    UnreachableError,
)
from sync.metrics import registry
from sync.models import ClusterAlert, ClusterConnection, SyncRun
from sync.passes import ledger_pass, lifecycle
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, serve

if TYPE_CHECKING:
    from sync.values import Listing

pytestmark = pytest.mark.django_db(transaction=True)


class Troubled(Memory):
    """A cluster whose pods cannot be listed while there is ``problem``."""

    problem: Exception | None = None

    def list(self, kind: str) -> Listing:
        if kind == "Pod" and self.problem:
            raise self.problem
        return super().list(kind)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Troubled:
    """A connected cluster that is ours, with a quota on both sides."""
    memory = Troubled("team")
    own(connected())
    memory.put(quota({"pods": "5"}))
    serve(monkeypatch, memory)
    assert carry_out().state == "done"
    return memory


def carry_out(mode: str = "sync") -> SyncRun:
    run = lifecycle.request(factories.cluster(), mode=mode, trigger="person", user="me")
    lifecycle.carry_out(run.pk)
    run.refresh_from_db()
    return run


def kinds() -> list[str]:
    return list(ClusterAlert.objects.filter(resolved=None).values_list("kind", flat=True))


@pytest.mark.parametrize(
    "problem",
    [
        BusyError("too many requests", code=429, retry_after=300),
        UnreachableError("no route"),
        KeyError("metadata"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_trouble_with_the_ledger_stops_no_policy(there: Troubled, problem: Exception) -> None:
    there.problem = problem
    edit({"pods": "7"})
    run = carry_out()
    assert run.state == "done"
    assert there.spec("ResourceQuota", "rq") == {"hard": {"pods": "7"}}
    assert run.counts[ledger_pass.FAILED] == 1
    assert "tries again" in run.error
    assert kinds() == [ledger_pass.FAILING]
    assert ClusterConnection.objects.get().state == "ok"


def test_next_run_looks_again_and_closes_the_alert(there: Troubled) -> None:
    there.problem = BusyError("too many requests", code=429)
    carry_out()
    there.problem = None
    run = carry_out()
    assert (run.error, ledger_pass.FAILED in run.counts) == ("", False)
    assert kinds() == []
    assert LedgerPass.objects.get(resource=ledger_pass.WHOLE).problem == ""


def test_refused_credential_stops_the_cluster_all_the_same(there: Troubled) -> None:
    there.problem = UnauthorizedError("no", code=401)
    assert carry_out().state == "failed"
    assert ClusterConnection.objects.get().state == "unauthorized"


def test_one_resource_that_is_garbage_hides_no_other(there: Troubled) -> None:
    edit({"pods": "5", "services": "2"})
    LedgerPass.objects.all().delete()
    there.problem = GarbageError("a list of more than 100000 objects")
    assert carry_out().error == ""
    assert kinds() == [ledger_pass.BLIND]
    found = dict(LedgerPass.objects.values_list("resource", "finished"))
    assert found["pods"] is None
    assert found["services"] is not None


def test_age_and_trouble_of_the_ledger_are_measured(there: Troubled) -> None:
    labels = {"cluster": "prod", "resource": "pods"}
    age, problem = "gatehouse_ledger_lag_seconds", "gatehouse_ledger_trouble"
    found = registry.get_sample_value(age, labels)
    assert found is not None
    assert found >= 0
    assert registry.get_sample_value(problem, labels) == 0
    there.problem = UnreachableError("no route")
    carry_out()
    assert registry.get_sample_value(problem, {**labels, "resource": "all"}) == 1
