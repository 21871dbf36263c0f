"""The next pass carries out a person's resolution, unless the cluster changed since."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from policies import services
from policies.models import PolicyRevision, ResourceQuota
from sync.models import SyncedObject, SyncRun
from sync.passes import full_pass, resolution
from sync.runs import leases
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, row, stored, sync

pytestmark = pytest.mark.django_db


def in_conflict() -> Memory:
    memory = Memory("team")
    memory.put(quota({"pods": "5", "services": "1"}))
    memory.put(quota({"pods": "1"}, name="stays"))
    sync(memory)
    own(connected())
    edit({"pods": "7", "services": "1"})
    memory.put(quota({"pods": "9", "services": "2"}))
    sync(memory)
    assert row().state == "conflict"
    return memory


def revision_of(name: str = "rq") -> int:
    """At what our side is now; 0 where there is none."""
    found = ResourceQuota.objects.filter(name=name).first()
    return found.revision if found else 0


def decide(choices: str | dict[str, str], *, reason: str = "") -> SyncRun:
    """Decide on both sides as they are."""
    return resolution.resolve(
        row(), choices=choices, revision=revision_of(), user="me", reason=reason
    )


@pytest.mark.parametrize(
    ("choices", "hard"),
    [
        ("ours", {"pods": "7", "services": "1"}),
        ("theirs", {"pods": "9", "services": "2"}),
        (
            {".spec.hard.pods": "ours", ".spec.hard.services": "theirs"},
            {"pods": "7", "services": "2"},
        ),
    ],
    ids=["ours", "theirs", "by field"],
)
def test_conflict_is_resolved(choices: str | dict[str, str], hard: dict[str, str]) -> None:
    memory = in_conflict()
    run = decide(choices)
    sync(memory)
    assert run.state == "waiting"
    assert (stored(), memory.spec("ResourceQuota", "rq")) == ({"hard": hard}, {"hard": hard})
    assert row().state == "in-sync"


def test_taking_theirs_is_on_record_under_the_persons_name() -> None:
    in_conflict()
    decide("theirs", reason="because")
    newest = PolicyRevision.objects.filter(kind="ResourceQuota", name="rq").first()
    assert newest is not None
    assert (newest.user, newest.reason) == ("me", "because")


def test_change_since_the_person_looked_is_not_decided_on() -> None:
    memory, shown = in_conflict(), row()
    memory.put(quota({"pods": "11"}))
    sync(memory)
    with pytest.raises(ValidationError) as refusal:
        resolution.resolve(shown, choices="ours", revision=revision_of(), user="me")
    assert refusal.value.code == "changed"


@pytest.mark.parametrize(
    "choices",
    ["ours", "theirs", {".spec.hard.pods": "theirs", ".spec.hard.services": "ours"}],
    ids=["ours", "theirs", "by field"],
)
def test_our_side_that_changed_since_the_person_looked_is_not_decided_on(
    choices: str | dict[str, str],
) -> None:
    in_conflict()
    seen = revision_of()
    edit({"pods": "8", "services": "1"})
    with pytest.raises(ValidationError) as refusal:
        resolution.resolve(row(), choices=choices, revision=seen, user="me")
    assert refusal.value.code == "ours_changed"
    assert stored() == {"hard": {"pods": "8", "services": "1"}}


@pytest.mark.parametrize("is_back", [False, True], ids=["deleted", "made anew"])
def test_our_side_that_was_deleted_since_is_not_decided_on(*, is_back: bool) -> None:
    in_conflict()
    seen = revision_of()
    services.delete_policy(policy=ResourceQuota.objects.get(name="rq"), user="else")
    if is_back:
        edit({"pods": "7", "services": "1"})
    with pytest.raises(ValidationError) as refusal:
        resolution.resolve(row(), choices="theirs", revision=seen, user="me")
    assert refusal.value.code == "ours_changed"


def test_change_after_the_decision_is_a_conflict_again() -> None:
    memory = in_conflict()
    decide("ours")
    memory.put(quota({"pods": "11"}))
    sync(memory)
    assert row().state == "conflict"
    assert memory.spec("ResourceQuota", "rq") == {"hard": {"pods": "11"}}


def test_pass_that_read_before_the_decision_yields_to_it() -> None:
    memory = in_conflict()

    def meanwhile() -> None:
        decide("ours")

    memory.put(quota({"pods": "1"}, name="stays"))
    run = SyncRun.objects.count()
    memory.faults[len(memory.calls) + 5] = meanwhile
    sync(memory)
    sync(memory)
    assert SyncRun.objects.count() > run
    assert memory.spec("ResourceQuota", "rq") == {"hard": {"pods": "7", "services": "1"}}


@pytest.mark.parametrize(("choice", "is_there"), [("ours", True), ("theirs", False)])
def test_deletion_against_edit_is_resolved(choice: str, *, is_there: bool) -> None:
    memory = in_conflict()
    memory.remove("ResourceQuota", "rq")
    sync(memory)
    decide(choice)
    sync(memory)
    both = stored() is not None, any(key.name == "rq" for key in memory.objects)
    assert both == (is_there, is_there)


def test_drift_is_undone_on_request() -> None:
    memory = Memory("team")
    memory.put(quota({"pods": "5"}))
    sync(memory)
    own(connected())
    sync(memory)
    memory.put(quota({"pods": "9"}))
    sync(memory)
    decide("ours")
    sync(memory)
    assert memory.spec("ResourceQuota", "rq") == {"hard": {"pods": "5"}}


def test_ours_needs_ownership() -> None:
    in_conflict()
    resolution.release_ownership(connected(), "me")
    with pytest.raises(ValidationError) as refusal:
        decide("ours")
    assert refusal.value.code == "not_owned"


def test_undecided_field_is_refused() -> None:
    in_conflict()
    with pytest.raises(ValidationError) as refusal:
        decide({".spec.hard.pods": "ours"})
    assert refusal.value.code == "choices"


def test_ownership_is_on_record_and_taken_once() -> None:
    cluster = connected()
    for _ in range(2):
        resolution.take_ownership(cluster, "me", namespace="team")
    assert resolution.release_ownership(cluster, "me", namespace="team")
    assert not resolution.release_ownership(cluster, "me", namespace="team")
    actions = PolicyRevision.objects.filter(kind="SyncOwnership").values_list("action", flat=True)
    assert list(actions) == ["delete", "create"]


@pytest.mark.parametrize(
    "place",
    [
        {"kind": "ResourceQuota"},
        {"kind": "ResourceQuota", "name": "rq"},
        {"namespace": "team", "kind": "PriorityClass", "name": "high"},
    ],
    ids=["no name", "no namespace", "only read"],
)
def test_place_that_is_none_is_refused(place: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        resolution.take_ownership(connected(), "me", **place)


def held() -> tuple[Memory, SyncRun]:
    memory = Memory("team")
    for number in range(12):
        memory.put(quota({"pods": "1"}, name=f"q{number}"))
    memory.put(quota({"pods": "1"}, name="stays"))
    own(connected())
    sync(memory)
    for policy in ResourceQuota.objects.exclude(name="stays"):
        services.delete_policy(policy=policy, user="me")
    return memory, sync(memory)


def test_confirmed_pass_deletes_what_it_was_held_for() -> None:
    memory, run = held()
    confirmed = resolution.confirm_held(run, "boss")
    assert (confirmed.state, confirmed.confirmed_by) == ("waiting", "boss")
    with leases.hold(run.cluster, 60) as lease:
        assert full_pass.full_pass(run.cluster, memory, confirmed, lease) == "done"  # type: ignore[arg-type]
    assert list(factories.namespace().resourcequotas.values_list("name", flat=True)) == ["stays"]
    assert SyncedObject.objects.exclude(gone=None).count() == 12


def test_confirmed_pass_deletes_in_the_cluster_what_was_deleted_here() -> None:
    memory = Memory("team")
    for number in range(12):
        memory.put(quota({"pods": "1"}, name=f"q{number}"))
    sync(memory)
    own(connected())
    for policy in ResourceQuota.objects.exclude(name="q0"):
        services.delete_policy(policy=policy, user="me")
    run = sync(memory)
    assert run.state == "held"
    confirmed = resolution.confirm_held(run, "boss")
    with leases.hold(run.cluster, 60) as lease:
        full_pass.full_pass(run.cluster, memory, confirmed, lease)  # type: ignore[arg-type]
    assert [one["metadata"]["name"] for one in memory.list("ResourceQuota").items] == ["q0"]
    assert set(run.results.values_list("outcome", flat=True)) == {"done"}


def test_run_that_is_not_held_cannot_be_confirmed() -> None:
    _, run = held()
    resolution.confirm_held(run, "boss")
    with pytest.raises(ValidationError) as refusal:
        resolution.confirm_held(run, "boss")
    assert refusal.value.code == "not_held"
