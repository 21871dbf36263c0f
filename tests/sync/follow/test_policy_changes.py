"""What a follower's watches show is stored at once, and edits of ours are written at once."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from engine.compiled import MUTATING
from policies.db.clock import read_clock
from policies.models import ClusterFollower, Namespace
from sync.follow import leases, policy_changes
from sync.models import ClusterConnection, SyncedObject, SyncRun, SyncState
from sync.runs.leases import LostLeaseError
from sync.values import ObjectKey
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, row, serve, stored, sync

if TYPE_CHECKING:
    from sync.follow.leases import FollowLease

pytestmark = pytest.mark.django_db
RQ = ObjectKey("ResourceQuota", "team", "rq")


def known(*, owned: bool = False) -> Memory:
    memory = Memory("team")
    memory.put(quota({"pods": "5"}))
    sync(memory)
    if owned:
        own(connected())
        sync(memory)
    return memory


def lease() -> FollowLease:
    """The lease of the one cluster, taken anew."""
    ClusterFollower.objects.update(lease_until=None)
    [claimed] = leases.claim("test", 9)
    return claimed


def take_in(memory: Memory, *keys: ObjectKey) -> policy_changes.TakenIn:
    """Take in these objects as they are now."""
    changed = {key: memory.objects.get(key) for key in keys or (RQ,)}
    return policy_changes.take_in(connected(), lease(), changed, now=read_clock())


def runs() -> list[tuple[str, str, Any]]:
    return list(SyncRun.objects.filter(mode="watch").values_list("trigger", "state", "counts"))


def waits() -> list[str]:
    return list(SyncRun.objects.filter(state="waiting").values_list("mode", flat=True))


def test_change_of_what_is_not_owned_is_stored_at_once() -> None:
    memory = known()
    memory.put(quota({"pods": "6"}))
    take_in(memory)
    assert stored() == {"hard": {"pods": "6"}}
    assert runs() == [("watch", "done", {"import": 1})]
    assert waits() == []


def test_what_is_equal_leaves_no_run() -> None:
    take_in(known())
    assert runs() == []


def test_stored_change_makes_no_pass_due() -> None:
    memory = known()
    memory.put(quota({"pods": "6"}))
    take_in(memory)
    state = SyncState.objects.select_related("cluster").get()
    assert state.policy_revision == state.cluster.policy_revision


def test_deletion_is_believed() -> None:
    memory = known()
    memory.remove("ResourceQuota", "rq")
    take_in(memory)
    assert stored() is None
    assert row().gone is not None


def test_object_that_waits_for_its_finalizers_is_gone() -> None:
    memory = known()
    leaving = quota({"pods": "5"})
    leaving["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    memory.put(leaving)
    take_in(memory)
    assert stored() is None


def test_namespace_goes_once_its_policies_are_gone() -> None:
    memory = known()
    team = ObjectKey("Namespace", "", "team")
    del memory.objects[team]
    outcome = take_in(memory, team)
    assert outcome.left == {team}
    memory.remove("ResourceQuota", "rq")
    outcome = take_in(memory, team, RQ)
    assert outcome.left == frozenset()
    assert not Namespace.objects.filter(name="team").exists()


def test_drift_is_seen_and_nothing_written() -> None:
    memory = known(owned=True)
    memory.put(quota({"pods": "9"}))
    take_in(memory)
    assert (row().state, stored(), memory.writes) == ("drifted", {"hard": {"pods": "5"}}, [])
    assert row().differences[0]["manager"] == "kubectl"


def test_conflict_is_put_on_record_once() -> None:
    memory = known(owned=True)
    edit({"pods": "7"})
    memory.put(quota({"pods": "9"}))
    take_in(memory)
    take_in(memory)
    assert runs() == [("watch", "done", {"conflict": 1})]
    assert row().state == "conflict"


def test_older_knowledge_does_not_replace_newer() -> None:
    memory = known()
    before = read_clock()
    old = dict(memory.objects)
    memory.put(quota({"pods": "6"}))
    take_in(memory)
    policy_changes.take_in(connected(), lease(), {RQ: old[RQ]}, now=before)
    assert stored() == {"hard": {"pods": "6"}}


def test_pass_does_not_replace_what_was_seen_since_its_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = known()

    def change_after_the_list() -> None:
        # The last list of the pass is answered as it was before this.
        if memory.calls[-1] == ("list", "MetadataPolicy"):
            memory.put(quota({"pods": "6"}))
            take_in(memory)

    memory.put(quota({"pods": "7"}))
    last_call = len(memory.calls) + 5
    memory.faults[last_call] = change_after_the_list
    sync(memory)
    assert stored() == {"hard": {"pods": "6"}}


def test_own_edit_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = known(owned=True)
    serve(monkeypatch, memory)
    ids = [connected().pk]
    assert policy_changes.with_edits(ids) == set()
    edit({"pods": "7"})
    assert policy_changes.with_edits(ids) == set(ids)
    policy_changes.write_edits(connected(), lease())
    assert policy_changes.with_edits(ids) == set()
    assert memory.spec("ResourceQuota", "rq") == {"hard": {"pods": "7"}}
    assert row().state == "in-sync"
    state = SyncState.objects.select_related("cluster").get()
    assert state.policy_revision == state.cluster.policy_revision


def metadata_policy(name: str, mode: str, **action: Any) -> Any:
    predicate = {"labelSelector": {"matchLabels": {"a" if mode == "enforce" else "c": "d"}}}
    rules = [{"policyPredicate": predicate, "policyAction": action}]
    made = factories.manifest("MetadataPolicy", {"rules": rules}, name=name, namespace="team")
    made["metadata"]["annotations"] = {"policy.gatehouse.dev/in-api-server": mode}
    return made


def test_edit_of_a_policy_beside_a_compiled_one_is_compiled_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = known(owned=True)
    serve(monkeypatch, memory)
    compiled = ObjectKey(MUTATING[0], "", "gatehouse.team.metadatapolicy.mp")
    factories.apply(metadata_policy("mp", "enforce", updatedLabels={"c": "d"}))
    policy_changes.write_edits(connected(), lease())
    assert compiled in memory.objects
    # This one selects what the other one sets: from now on only the portal may set that.
    factories.apply(metadata_policy("other", "off", reject=True))
    policy_changes.write_edits(connected(), lease())
    assert compiled not in memory.objects


def test_edit_of_what_the_portal_does_not_own_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = known()
    serve(monkeypatch, memory)
    edit({"pods": "7"})
    policy_changes.write_edits(connected(), lease())
    assert memory.writes == []
    assert row().state == "unowned"


def test_many_edits_are_left_to_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = known(owned=True)
    serve(monkeypatch, memory)
    monkeypatch.setattr(policy_changes, "MOST_EDITS", 1)
    edit({"pods": "7"})
    edit({"pods": "7"}, name="other")
    policy_changes.write_edits(connected(), lease())
    assert memory.writes == []
    assert waits() == ["sync"]


def lists(memory: Memory) -> dict[str, list[Any]]:
    kinds = ("Namespace", "ResourceQuota")
    return {kind: [o for key, o in memory.objects.items() if key.kind == kind] for kind in kinds}


def test_lists_after_a_gap_bring_what_was_missed() -> None:
    memory = known()
    memory.put(quota({"pods": "6"}))
    memory.put(quota({"pods": "1"}, name="new"))
    policy_changes.take_in_lists(connected(), lease(), lists(memory), now=read_clock())
    assert (stored(), stored("new")) == ({"hard": {"pods": "6"}}, {"hard": {"pods": "1"}})


def test_list_brings_deletions() -> None:
    memory = known()
    memory.put(quota({"pods": "1"}, name="other"))
    take_in(memory, ObjectKey("ResourceQuota", "team", "other"))
    memory.remove("ResourceQuota", "rq")
    policy_changes.take_in_lists(connected(), lease(), lists(memory), now=read_clock())
    assert (stored(), bool(stored("other"))) == (None, True)


def test_list_that_is_suddenly_empty_is_not_believed() -> None:
    memory = known()
    memory.remove("ResourceQuota", "rq")
    policy_changes.take_in_lists(connected(), lease(), lists(memory), now=read_clock())
    assert stored()
    assert waits() == ["sync"]


def test_lost_lease_stores_nothing() -> None:
    memory = known()
    old = lease()
    lease()
    memory.put(quota({"pods": "6"}))
    with pytest.raises(LostLeaseError):
        policy_changes.take_in(connected(), old, {RQ: memory.objects[RQ]}, now=read_clock())
    assert stored() == {"hard": {"pods": "5"}}


@pytest.mark.parametrize(("left", "is_renewed"), [(3, True), (6, False)])
def test_lease_that_renewals_have_missed_is_renewed_by_what_locks_it(
    *, left: int, is_renewed: bool
) -> None:
    known()
    held = lease()
    until = read_clock() + dt.timedelta(seconds=left)
    ClusterFollower.objects.update(lease_until=until)
    with held.guard():
        pass
    assert (ClusterFollower.objects.get().lease_until != until) is is_renewed
    held.check()


def test_paused_cluster_is_given_up() -> None:
    known()
    held = lease()
    ClusterConnection.objects.update(is_paused=True)
    assert leases.renew({held: ""}) == {held}
    leases.release([held])
    assert leases.claim("other", 9) == []


def test_nothing_older_is_kept_for_a_new_object() -> None:
    memory = known()
    memory.put(quota({"pods": "1"}, name="new"))
    key = ObjectKey("ResourceQuota", "team", "new")
    take_in(memory, key)
    assert SyncedObject.objects.get(name="new").object_uid == memory.objects[key]["metadata"]["uid"]


def test_no_more_clusters_are_claimed_than_can_begin() -> None:
    for name in ("a", "b", "c"):
        connected(name)
    first = leases.claim("one", 2)
    assert leases.claim("one", 0) == []
    others = leases.claim("other", 9)
    assert (len(first), len(others)) == (2, 1)
    assert {each.cluster_id for each in first}.isdisjoint(each.cluster_id for each in others)
