"""A quota laid over objects that are there lets nothing in until these are counted, at once."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING

import pytest

from admission.decide import Call, decide
from engine.request import Phase
from policies import services, snapshot
from policies.db.clock import read_clock
from policies.models import PolicyRevision, QuotaUsage, ResourceQuota
from sync import policy_writes
from sync.connect import connections
from sync.errors import APIError, BusyError, ForbiddenError, UnreachableError
from sync.models import ClusterConnection, SyncState
from sync.passes import ledger_pass, lifecycle
from sync.runs import pause
from tests import factories
from tests.builders import request
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, own, quota, serve
from tests.sync.pretended import live_pod

if TYPE_CHECKING:
    from engine.decision import Decision
    from sync.models import SyncRun
    from sync.values import Listing

pytestmark = pytest.mark.django_db(transaction=True)
UNKNOWN = 'pods "new" is forbidden: status unknown for quota: rq, resources: pods,requests.cpu'


class Peopled(Memory):
    """A cluster with pods; ``problem`` is what comes instead of a list of them."""

    problem: APIError | Exception | None = None

    def list(self, kind: str) -> Listing:
        if kind == "Pod" and self.problem:
            raise self.problem
        return super().list(kind)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Peopled:
    """A cluster that is followed, with three pods and no quota."""
    memory = Peopled("team")
    own(connected())
    for name in ("a", "b", "c"):
        memory.put(live_pod(name, cpu="1"))
    serve(monkeypatch, memory)
    assert carry_out().state == "done"
    return memory


def carry_out(mode: str = "sync") -> SyncRun:
    run = lifecycle.request(factories.cluster(), mode=mode, trigger="person", user="me")
    lifecycle.carry_out(run.pk)
    run.refresh_from_db()
    return run


def judged(name: str = "new", *, cpu: str = "1") -> Decision:
    """What the webhook says about one more pod."""
    snapshot.refresh()
    call = Call(cluster="prod", phase=Phase.VALIDATE, client="", started=time.monotonic_ns())
    asked = request(live_pod(name, cpu=cpu), namespace="team")
    return decide(asked, call=call).decision


def reasons(decision: Decision) -> list[str]:
    return [violation.reason.value for violation in decision.violations]


def waiting() -> list[str]:
    return [name for each in services.uncounted(factories.cluster()) for name in each.names]


def open_alerts() -> set[str]:
    return set(factories.cluster().alerts.filter(resolved=None).values_list("kind", flat=True))


def test_nothing_is_let_in_under_a_quota_of_which_nobody_knows_how_much_is_used(
    there: Peopled,
) -> None:
    factories.resource_quota({"pods": "4", "requests.cpu": "9"})
    decision = judged()
    assert (decision.allowed, decision.message) == (False, UNKNOWN)
    assert reasons(decision) == ["StatusUnknown"]
    assert QuotaUsage.objects.get().used == {"pods": "0", "requests.cpu": "0"}
    assert there.problem is None


def test_what_is_there_is_counted_by_the_next_run_before_all_else(there: Peopled) -> None:
    factories.resource_quota({"pods": "4", "requests.cpu": "9"})
    there.calls.clear()
    carry_out()
    assert there.calls[:2] == [("list", "ResourceQuota"), ("list", "Pod")]
    assert waiting() == []
    assert QuotaUsage.objects.get().used == {"pods": "3", "requests.cpu": "3"}
    assert judged("fourth").allowed
    assert reasons(judged("fifth")) == ["ExceededQuota"]


def test_only_names_that_are_new_are_unknown(there: Peopled) -> None:
    factories.resource_quota({"pods": "9"})
    carry_out()
    factories.apply(quota({"pods": "7"}))
    assert waiting() == []
    assert judged().allowed
    factories.apply(quota({"pods": "7", "services": "1"}))
    assert waiting() == ["services"]
    assert judged("another").allowed
    factories.apply(quota({"pods": "7"}))
    assert waiting() == []
    assert there.problem is None


def test_name_that_comes_back_is_counted_anew(there: Peopled) -> None:
    factories.apply(quota({"pods": "9"}))
    carry_out()
    factories.apply(quota({"services": "1"}))
    carry_out()
    factories.apply(quota({"services": "1", "pods": "9"}))
    assert waiting() == ["pods"]
    assert there.problem is None


def test_other_quotas_and_objects_are_not_held_up(there: Peopled) -> None:
    factories.resource_quota({"services": "1"})
    assert waiting() == ["services"]
    assert judged().allowed
    assert there.problem is None


def test_page_and_api_do_not_say_what_is_not_known(there: Peopled) -> None:
    factories.resource_quota({"pods": "9", "services": "2"})
    carry_out()
    factories.apply(quota({"pods": "9", "services": "2", "configmaps": "1"}))
    stored = ResourceQuota.objects.select_related("usage").get()
    assert stored.status()["used"] == {"pods": "3", "services": "0"}
    [loaded] = snapshot.load_quotas("prod", "team")
    assert loaded.used.keys() == {"pods", "services"}
    known = snapshot.refresh().clusters["prod"].policy_set("team").resource_quotas
    assert [each.used.keys() for each in known] == [{"pods", "services"}]
    assert there.problem is None


def test_quota_that_a_first_pass_takes_in_with_its_use_is_known(there: Peopled) -> None:
    made = quota({"pods": "4"})
    services.create_many(
        cluster=factories.cluster(),
        manifests=[
            {**made, "status": {"hard": {"pods": "4"}, "used": {"pods": "2"}}},
            quota({"pods": "4"}, name="other"),
        ],
        user="ada",
    )
    unknown = {each.name: each.names for each in services.uncounted(factories.cluster())}
    assert unknown == {"other": ("pods",)}
    factories.resource_quota({"pods": "4", "services": "3"}, name="said", used={"pods": "2"})
    assert ResourceQuota.objects.get(name="said").uncounted == ["services"]
    assert there.problem is None


@pytest.mark.parametrize("state", ["none", "paused", "unreachable", "asleep", "native", "blind"])
def test_where_nobody_can_count_the_ledgers_own_charges_stand(there: Peopled, state: str) -> None:
    cluster = factories.cluster()
    connection = ClusterConnection.objects.filter(cluster=cluster)
    if state == "none":
        connection.delete()
    elif state == "paused":
        connection.update(is_paused=True)
    elif state == "unreachable":
        connection.update(state="unreachable")
    elif state == "asleep":
        hours_ago = read_clock() - dt.timedelta(hours=5)
        SyncState.objects.update(last_success=hours_ago, lease_until=hours_ago)
    elif state == "native":
        services.set_authority(cluster=cluster, authority="native", user="ada")
    else:
        cluster.ledger_passes.create(resource="pods", problem="forbidden")
    factories.resource_quota({"pods": "4"})
    assert waiting() == []
    assert judged().allowed
    assert there.problem is None


def test_what_may_not_be_listed_stands_as_the_ledger_has_it_with_an_alert(there: Peopled) -> None:
    factories.resource_quota({"pods": "4"})
    there.problem = ForbiddenError("no", code=403)
    carry_out()
    assert waiting() == []
    assert open_alerts() == {ledger_pass.BLIND}
    assert judged().allowed


@pytest.mark.parametrize(
    "problem",
    [UnreachableError("no route"), BusyError("slow down", code=429), KeyError("metadata")],
    ids=lambda each: type(each).__name__,
)
def test_run_that_cannot_count_leaves_nobody_refused(
    there: Peopled, problem: APIError | Exception
) -> None:
    factories.resource_quota({"pods": "4"})
    there.problem = problem
    carry_out()
    assert waiting() == []
    assert policy_writes.UNCOUNTED in open_alerts()
    assert judged().allowed
    there.problem = None
    carry_out()
    assert open_alerts() == set()
    assert QuotaUsage.objects.get().used == {"pods": "4"}


def test_cluster_that_cannot_be_reached_any_more_leaves_nobody_refused(
    there: Peopled, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.resource_quota({"pods": "4"})

    def unreachable(*_: object) -> None:
        raise UnreachableError("no route")

    monkeypatch.setattr(connections, "open_client", unreachable)
    carry_out()
    assert waiting() == []
    assert policy_writes.UNCOUNTED in open_alerts()
    assert there.problem is None


@pytest.mark.parametrize("how", ["pause", "disconnect"])
def test_person_who_stops_the_sync_leaves_nobody_refused(there: Peopled, how: str) -> None:
    factories.resource_quota({"pods": "4"})
    if how == "pause":
        pause.pause(factories.cluster(), user="ada", reason="maintenance")
    else:
        connections.disconnect(factories.cluster(), "ada")
    assert waiting() == []
    assert open_alerts() == {policy_writes.UNCOUNTED}
    assert there.problem is None


def test_quota_that_was_written_meanwhile_waits_for_the_next_count(there: Peopled) -> None:
    factories.resource_quota({"pods": "4"})
    read = services.uncounted(factories.cluster())
    factories.apply(quota({"pods": "4", "services": "1"}))
    policy_writes.note_counted(factories.cluster(), read)
    assert waiting() == ["pods", "services"]
    carry_out()
    assert waiting() == []
    assert there.problem is None


def test_count_is_on_record_and_makes_no_pass_due(there: Peopled) -> None:
    factories.resource_quota({"pods": "4"})
    carry_out()
    found = PolicyRevision.objects.get(kind="CountedQuotas")
    assert (found.namespace, found.user) == ("team", "cluster:prod")
    assert (found.before or {})["spec"] == {"uncounted": {"rq": ["pods"]}}
    state = SyncState.objects.select_related("cluster").get()
    assert state.policy_revision == state.cluster.policy_revision
    assert there.problem is None
