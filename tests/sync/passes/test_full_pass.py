"""A full pass: adopts, follows, writes what is owned, and never overwrites an edit."""

from __future__ import annotations

import pytest

from policies import services
from policies.models import PolicyRevision, QuotaUsage
from sync.errors import (
    BusyError,
    ConflictError,
    ForbiddenError,
    GarbageError,
    InvalidError,
)
from sync.models import SyncCursor, SyncResult, SyncState
from sync.passes import object_sides
from sync.values import ObjectKey
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, row, stored, sync

pytestmark = pytest.mark.django_db


def adopted(hard: dict[str, str] | None = None) -> Memory:
    """A cluster with one quota that both sides know, and another one that stays as it is."""
    memory = Memory("team")
    memory.put(quota(hard or {"pods": "5"}))
    memory.put(quota({"services": "1"}, name="stays"))
    sync(memory)
    return memory


def test_first_pass_adopts_and_writes_nothing() -> None:
    memory = adopted()
    assert stored() == {"hard": {"pods": "5"}}
    assert row().state == "unowned"
    assert memory.writes == []
    assert PolicyRevision.objects.get(kind="ResourceQuota", name="rq").user == "cluster:prod"


def test_used_amounts_become_the_opening_balance() -> None:
    memory = Memory("team")
    memory.put({**quota({"pods": "5"}), "status": {"hard": {"pods": "5"}, "used": {"pods": "2"}}})
    sync(memory)
    assert QuotaUsage.objects.get().used == {"pods": "2"}


def test_second_pass_changes_nothing() -> None:
    memory = adopted()
    own(connected())
    sync(memory)
    before = PolicyRevision.objects.count(), len(memory.writes)
    run = sync(memory)
    assert (PolicyRevision.objects.count(), len(memory.writes)) == before
    assert not SyncResult.objects.filter(run=run).exists()


def test_unowned_object_follows_the_cluster() -> None:
    memory = adopted()
    memory.put(quota({"pods": "9"}))
    sync(memory)
    assert stored() == {"hard": {"pods": "9"}}
    memory.remove("ResourceQuota", "rq")
    sync(memory)
    assert stored() is None
    assert row().gone


def test_our_edit_of_what_is_not_owned_stays_ours_and_is_not_written() -> None:
    memory = adopted()
    edit({"pods": "7"})
    sync(memory)
    assert (memory.writes, stored(), row().state) == ([], {"hard": {"pods": "7"}}, "unowned")


@pytest.mark.parametrize(
    "place",
    [{}, {"namespace": "team"}, {"namespace": "team", "kind": "ResourceQuota", "name": "rq"}],
    ids=["cluster", "namespace", "object"],
)
def test_our_edit_is_written_once_owned(place: dict[str, str]) -> None:
    memory = adopted()
    own(connected(), **place)
    edit({"pods": "7"})
    run = sync(memory)
    assert memory.spec("ResourceQuota", "rq") == {"hard": {"pods": "7"}}
    assert memory.writes == [("apply", "ResourceQuota team/rq")]
    assert row().state == "in-sync"
    assert run.results.get().outcome == "done"


def test_ownership_of_one_object_writes_no_other() -> None:
    memory = adopted()
    memory.put(quota({"pods": "1"}, name="other"))
    sync(memory)
    own(connected(), namespace="team", kind="ResourceQuota", name="other")
    edit({"pods": "7"})
    sync(memory)
    assert memory.writes == []


def test_our_deletion_is_carried_out_on_the_object_that_was_judged() -> None:
    memory = adopted()
    own(connected())
    factories.namespace().resourcequotas.get(name="rq").delete()
    sync(memory)
    assert memory.writes == [("delete", "ResourceQuota team/rq")]
    assert row().gone


def test_their_edit_of_what_is_owned_is_drift_with_its_author() -> None:
    memory = adopted()
    own(connected())
    sync(memory)
    memory.put(quota({"pods": "9"}), manager="helm")
    sync(memory)
    [difference] = row().differences
    assert (row().state, memory.writes, stored()) == ("drifted", [], {"hard": {"pods": "5"}})
    assert difference["field"] == ".spec.hard.pods"
    assert (difference["base"], difference["ours"], difference["theirs"]) == ("5", "5", "9")
    assert difference["manager"] == "helm"


def test_edits_on_both_sides_are_a_conflict_and_both_stay() -> None:
    memory = adopted()
    own(connected())
    edit({"pods": "7"})
    memory.put(quota({"pods": "9"}))
    run = sync(memory)
    assert row().state == "conflict"
    assert (memory.spec("ResourceQuota", "rq"), stored()) == (
        {"hard": {"pods": "9"}},
        {"hard": {"pods": "7"}},
    )
    assert run.results.get().outcome == "conflict"


def test_object_that_is_new_in_the_cluster_is_adopted_where_we_own() -> None:
    memory = adopted()
    own(connected())
    memory.put(quota({"pods": "1"}, name="new"))
    sync(memory)
    assert (row("new").state, stored("new")) == ("in-sync", {"hard": {"pods": "1"}})


def test_our_deletion_against_their_edit_is_a_conflict() -> None:
    memory = adopted()
    own(connected())
    factories.namespace().resourcequotas.get(name="rq").delete()
    memory.put(quota({"pods": "9"}))
    sync(memory)
    assert (row().state, memory.writes) == ("conflict", [])


def test_their_deletion_against_our_edit_is_a_conflict() -> None:
    memory = adopted()
    own(connected())
    edit({"pods": "7"})
    memory.remove("ResourceQuota", "rq")
    sync(memory)
    assert (row().state, stored()) == ("conflict", {"hard": {"pods": "7"}})


def test_amounts_are_compared_by_value() -> None:
    memory = adopted({"requests.cpu": "100m"})
    own(connected())
    edit({"requests.cpu": ".1"})
    sync(memory)
    assert (memory.writes, row().state) == ([], "in-sync")


def test_import_writes_nothing_even_where_owned() -> None:
    memory = adopted()
    own(connected())
    edit({"pods": "7"})
    sync(memory, mode="import")
    assert (memory.writes, row().state) == ([], "pending")


def test_preview_tries_and_stores_nothing() -> None:
    memory = adopted()
    own(connected())
    edit({"pods": "7"})
    memory.put(quota({"pods": "1"}, name="new"))
    before = row().base, PolicyRevision.objects.count()
    run = sync(memory, mode="preview")
    found = dict(run.results.values_list("name", "message"))
    assert found == {"rq": "would update", "new": "would import"}
    assert (row().base, PolicyRevision.objects.count()) == before
    assert memory.writes == []


def test_missing_metadata_policies_are_no_failure() -> None:
    memory = Memory("team")
    memory.absent = {"MetadataPolicy"}
    assert sync(memory).state == "done"


def test_partial_read_applies_nothing() -> None:
    memory = Memory("team")
    memory.put(quota({"pods": "5"}))
    memory.faults[5] = GarbageError("cut short")
    with pytest.raises(GarbageError):
        sync(memory)
    assert stored() is None
    assert not SyncCursor.objects.exists()


def test_one_refused_object_holds_up_no_other() -> None:
    memory = adopted()
    own(connected())
    edit({"pods": "7"})
    edit({"pods": "3"}, name="next")
    memory.faults[len(memory.calls) + 6] = InvalidError("no", code=422)
    run = sync(memory)
    assert run.counts["failed"] == 1
    assert ObjectKey("ResourceQuota", "team", "next") not in memory.objects
    assert memory.spec("ResourceQuota", "rq") == {"hard": {"pods": "7"}}


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [
        (ForbiddenError('limitranges "x" is forbidden: exceeded', code=403), True),
        (ForbiddenError('User "gatehouse" cannot patch resource', code=403), False),
        (BusyError("failed calling webhook", code=500), True),
        (BusyError("slow down", code=429, retry_after=3), False),
    ],
    ids=["plugin", "permission", "webhook", "busy"],
)
def test_errors_of_one_object_are_distinguished_from_those_of_the_cluster(
    error: Exception, *, goes_on: bool
) -> None:
    memory = adopted()
    own(connected())
    edit({"pods": "7"})
    memory.faults[len(memory.calls) + 6] = error  # type: ignore[assignment]
    if goes_on:
        assert sync(memory).counts["failed"] == 1
    else:
        with pytest.raises(type(error)):
            sync(memory)


def test_write_that_lost_the_race_is_judged_anew() -> None:
    memory = adopted()
    own(connected())
    edit({"pods": "7"})
    memory.faults[len(memory.calls) + 7] = lambda: (memory.put(quota({"pods": "9"})), None)[1]
    sync(memory)
    assert memory.spec("ResourceQuota", "rq") == {"hard": {"pods": "9"}}
    assert row().state == "conflict"


def test_five_lost_races_are_a_conflict() -> None:
    memory = adopted()
    own(connected())
    edit({"pods": "7"})
    start = len(memory.calls)
    for call in range(start + 6, start + 60, 2):
        memory.faults[call] = ConflictError("modified", code=409)
    sync(memory)
    assert row().state == "conflict"
    assert memory.writes == []


def test_missing_namespace_is_reported_without_a_request() -> None:
    memory = Memory("other")
    cluster = connected()
    own(cluster)
    edit({"pods": "7"})
    run = sync(memory)
    assert memory.writes == []
    assert run.results.get(kind="ResourceQuota").outcome == "failed"


def test_empty_list_is_believed_only_when_seen_twice() -> None:
    memory = Memory("team")
    memory.put(quota({"pods": "5"}))
    sync(memory)
    memory.remove("ResourceQuota", "rq")
    run = sync(memory)
    assert stored()
    assert (run.counts["doubted"], SyncState.objects.get().last_full_pass) == (1, None)
    sync(memory)
    assert stored() is None


def many(*, owned: bool) -> Memory:
    """Thirteen quotas that both sides know."""
    memory = Memory("team", "other")
    for number in range(12):
        memory.put(quota({"pods": "1"}, name=f"q{number}"))
    memory.put(quota({"pods": "1"}, name="stays", namespace="other"))
    if owned:
        own(connected())
    sync(memory)
    return memory


def delete_ours() -> None:
    cluster = factories.cluster()
    for number in range(12):
        found = services.find_object(
            cluster, kind="ResourceQuota", name=f"q{number}", namespace="team"
        )
        services.delete_policy(policy=found, user="ada")


def test_many_deletions_in_the_cluster_are_held_and_nothing_is_deleted() -> None:
    memory = many(owned=True)
    delete_ours()
    run = sync(memory)
    assert run.state == "held"
    assert run.results.filter(outcome="held").count() == 12
    assert memory.writes == []
    assert row("q3").state == "held"


def test_held_run_holds_nothing_else() -> None:
    memory = many(owned=True)
    delete_ours()
    memory.put(quota({"pods": "7"}, name="new", namespace="other"))
    edit({"pods": "3"}, name="ours")
    run = sync(memory)
    assert run.state == "held"
    assert stored("new", namespace="other") == {"hard": {"pods": "7"}}
    assert [verb for verb, _ in memory.writes] == ["apply"]
    state = SyncState.objects.select_related("cluster").get()
    assert state.last_full_pass is not None
    assert state.policy_revision == state.cluster.policy_revision


def test_namespace_that_its_owner_deleted_is_forgotten_with_all_that_was_followed() -> None:
    memory = many(owned=False)
    for number in range(12):
        memory.remove("ResourceQuota", f"q{number}")
    memory.remove("Namespace", "team", "")
    run = sync(memory)
    assert (run.state, run.counts["forget"]) == ("done", 13)
    assert not factories.cluster().namespaces.filter(name="team").exists()


# A quota's status


def with_status(memory: Memory, *, used: str, manager: str = "kube-controller-manager") -> None:
    """The status written by somebody, or by us."""
    key = ObjectKey("ResourceQuota", "team", "rq")
    status = {"hard": {"pods": "5"}, "used": {"pods": used}}
    live = {**memory.objects[key], "status": status}
    if manager == "gatehouse":
        memory.replace_status(live)
    else:
        memory.put(live, manager=manager)


@pytest.mark.parametrize("manager", ["gatehouse", "kube-controller-manager"])
@pytest.mark.parametrize("owned", [True, False])
def test_a_status_is_never_drift(manager: str, owned: bool) -> None:  # noqa: FBT001 - a table
    memory = adopted()
    if owned:
        own(connected())
        sync(memory)
    before = row()
    with_status(memory, used="3", manager=manager)
    writes = list(memory.writes)
    run = sync(memory)
    after = row()
    assert (after.state, after.since) == (before.state, before.since)
    assert (after.theirs, after.base, after.differences) == (before.theirs, before.base, [])
    assert memory.writes == writes
    assert not SyncResult.objects.filter(run=run).exists()


def test_a_choice_holds_though_the_status_has_changed() -> None:
    memory = adopted()
    own(connected())
    sync(memory)
    memory.put(quota({"pods": "9"}))
    sync(memory)
    ours = services.find_object(connected(), kind="ResourceQuota", name="rq", namespace="team")
    shown = object_sides.seen(row(), ours)
    with_status(memory, used="3", manager="gatehouse")
    sync(memory)
    assert object_sides.seen(row(), ours) == shown
    memory.put(quota({"pods": "8"}))
    sync(memory)
    assert object_sides.seen(row(), ours) != shown


def test_used_amounts_that_we_wrote_are_no_opening_balance() -> None:
    memory = Memory("team")
    memory.put(quota({"pods": "5"}))
    with_status(memory, used="3", manager="gatehouse")
    sync(memory)
    assert QuotaUsage.objects.get().used == {"pods": "0"}
