"""Objects on their way out or made anew, empty and huge ones: nothing is lost, nothing undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies import services
from policies.models import LimitRange, Namespace, ResourceQuota
from sync.models import SyncOwnership
from sync.passes import full_pass, resolution
from sync.runs import leases
from sync.values import ObjectKey
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, row, stored, sync

if TYPE_CHECKING:
    from tests.builders import Manifest

pytestmark = pytest.mark.django_db
RULES = "policy.gatehouse.dev/v1alpha1"
RQ = ObjectKey("ResourceQuota", "team", "rq")


def owned() -> Memory:
    """A cluster that the portal owns, with one quota that both sides agree on."""
    memory = Memory("team")
    memory.put(quota({"pods": "5"}))
    memory.put(quota({"services": "1"}, name="stays"))
    sync(memory)
    own(connected())
    sync(memory)
    return memory


def begin_to_leave(memory: Memory) -> None:
    """Have somebody delete it, while a finalizer keeps it there."""
    memory.objects[RQ]["metadata"] |= {
        "deletionTimestamp": "2026-11-21T10:00:00Z",
        "finalizers": ["example.com/wait"],
    }


def delete_ours() -> None:
    services.delete_policy(policy=ResourceQuota.objects.get(name="rq"), user="me")


def decide(choices: str) -> None:
    found = ResourceQuota.objects.filter(name="rq").first()
    revision = found.revision if found else 0
    resolution.resolve(row(), choices=choices, revision=revision, user="me")


def test_object_waiting_for_its_finalizers_is_gone_for_us() -> None:
    memory = owned()
    SyncOwnership.objects.all().delete()
    begin_to_leave(memory)
    sync(memory)
    assert stored() is None


@pytest.mark.parametrize("pods", ["5", "7"], ids=["as it was", "otherwise"])
def test_what_is_made_anew_here_waits_until_the_old_one_has_left(pods: str) -> None:
    memory = owned()
    delete_ours()
    begin_to_leave(memory)
    sync(memory)
    edit({"pods": pods})
    run = sync(memory)
    assert run.results.get().outcome == "failed"
    assert (row().state, row().theirs) == ("pending", None)
    memory.remove("ResourceQuota", "rq")
    sync(memory)
    assert (memory.spec("ResourceQuota", "rq"), row().state) == (
        {"hard": {"pods": pods}},
        "in-sync",
    )


def test_deletion_of_an_edit_while_it_is_leaving_is_a_conflict() -> None:
    memory = owned()
    edit({"pods": "7"})
    begin_to_leave(memory)
    sync(memory)
    assert (row().state, stored()) == ("conflict", {"hard": {"pods": "7"}})


@pytest.mark.parametrize(("choices", "is_there"), [("ours", False), ("theirs", True)])
def test_object_made_anew_since_ours_was_deleted_is_not_deleted_unseen(
    choices: str, *, is_there: bool
) -> None:
    memory = owned()
    delete_ours()
    memory.remove("ResourceQuota", "rq")
    memory.put(quota({"pods": "5"}))
    for _ in range(2):
        sync(memory)
        assert (row().state, memory.writes) == ("conflict", [])
    decide(choices)
    sync(memory)
    assert (stored() is not None, RQ in memory.objects) == (is_there, is_there)


def test_object_made_anew_while_we_were_deleting_it_is_kept() -> None:
    memory = owned()
    delete_ours()

    def make_anew() -> None:
        memory.remove("ResourceQuota", "rq")
        memory.put(quota({"pods": "5"}))

    memory.faults[len(memory.calls) + 6] = make_anew
    sync(memory)
    assert row().state == "conflict"
    assert RQ in memory.objects


def test_nothing_more_is_written_once_ownership_was_given_back() -> None:
    memory = owned()
    edit({"pods": "7"})
    edit({"services": "2"}, name="stays")

    def give_back() -> None:
        resolution.release_ownership(connected(), "me")

    memory.faults[len(memory.calls) + 6] = give_back
    run = sync(memory)
    assert memory.writes == [("apply", "ResourceQuota team/rq")]
    assert dict(run.results.values_list("name", "outcome")) == {"rq": "done", "stays": "failed"}


def test_confirmation_of_some_deletions_is_none_of_others() -> None:
    memory = Memory("team")
    own(connected())
    for number in range(24):
        memory.put(quota({"pods": "1"}, name=f"q{number:02}"))
    sync(memory)
    first, others = (ResourceQuota.objects.order_by("name")[i : i + 12] for i in (0, 12))
    others = list(others)
    for policy in list(first):
        services.delete_policy(policy=policy, user="me")
    confirmed = resolution.confirm_held(sync(memory), "boss")
    for policy in others:
        services.delete_policy(policy=policy, user="me")
    with leases.hold(confirmed.cluster, 60) as lease:
        state = full_pass.full_pass(confirmed.cluster, memory, confirmed, lease)  # type: ignore[arg-type]
    left = {one["metadata"]["name"] for one in memory.list("ResourceQuota").items}
    assert (state, left) == ("held", {policy.name for policy in others})


def test_namespace_on_its_way_out_is_not_written_to() -> None:
    memory = owned()
    edit({"pods": "7"})
    memory.objects[ObjectKey("Namespace", "", "team")]["status"] = {"phase": "Terminating"}
    run = sync(memory)
    assert Namespace.objects.get().phase == "Terminating"
    assert (memory.writes, run.results.get(kind="ResourceQuota").outcome) == ([], "failed")
    assert (row().state, stored()) == ("pending", {"hard": {"pods": "7"}})


REJECTS = {"policyAction": {"updatedLabels": {}, "reject": True}}
EMPTY: dict[str, Manifest] = {
    "no limits": {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": []}},
    "null limits": {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": None}},
    "empty limit": {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "spec": {"limits": [{"type": "Pod"}]},
    },
    "no spec": {"apiVersion": "v1", "kind": "ResourceQuota"},
    "no hard": {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {}}},
    "no scopes": {"apiVersion": "v1", "kind": "ResourceQuota"}
    | {"spec": {"hard": {"pods": "1"}, "scopes": [], "scopeSelector": {}}},
    "no expressions": {"apiVersion": "v1", "kind": "ResourceQuota"}
    | {"spec": {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": []}}},
    "no rules": {"apiVersion": RULES, "kind": "MetadataPolicy", "spec": {"rules": []}},
    "empty rule": {"apiVersion": RULES, "kind": "MetadataPolicy"}
    | {
        "spec": {
            "rules": [{"policyPredicate": {"labelSelector": {"matchExpressions": []}}} | REJECTS]
        }
    },
}


@pytest.mark.parametrize("case", EMPTY)
def test_empty_lists_are_taken_in_and_stay(case: str) -> None:
    memory, manifest = Memory("team"), EMPTY[case]
    empty = {"labels": {}, "annotations": {}, "generateName": "x-"}
    memory.put({**manifest, "metadata": {"name": "x", "namespace": "team", **empty}})
    run = sync(memory)
    assert run.counts["import"] == 2
    own(connected())
    again = sync(memory)
    assert not again.results.exists()
    assert row("x", kind=manifest["kind"]).state == "in-sync"
    assert memory.writes == []


def test_object_of_a_megabyte_is_taken_in_beside_the_others() -> None:
    domain = ".".join(["very-long-label-of-a-domain"] * 5)
    names = [f"{domain}/device-{number:05}" for number in range(3_000)]
    limits = {
        "type": "Container",
        "max": dict.fromkeys(names, "1"),
        "min": dict.fromkeys(names, "0"),
    }
    memory = Memory("team")
    metadata = {"name": "huge", "namespace": "team"}
    memory.put(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": metadata,
            "spec": {"limits": [limits]},
        }
    )
    memory.put(quota({"pods": "5"}))
    run = sync(memory)
    assert run.counts["import"] == 3
    assert LimitRange.objects.get().rows.count() == len(names)
    own(connected())
    assert not sync(memory).results.exists()


def test_whole_list_against_an_empty_one_is_one_choice() -> None:
    memory = Memory("team")
    limits = [{"type": "Container", "max": {"cpu": "1"}}]
    place = {"name": "lr", "namespace": "team"}
    manifest = {"apiVersion": "v1", "kind": "LimitRange", "metadata": place}
    memory.put({**manifest, "spec": {"limits": limits}})
    sync(memory)
    own(connected())
    factories.apply(
        {**manifest, "spec": {"limits": [*limits, {"type": "Pod", "max": {"cpu": "2"}}]}}
    )
    memory.put({**manifest, "spec": {"limits": []}})
    sync(memory)
    found: Any = row("lr", kind="LimitRange")
    assert found.state == "conflict"
    assert [one["field"] for one in found.differences] == [".spec.limits"]
