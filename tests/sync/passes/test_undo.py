"""Undoing a resolution opens the difference again, or restores the cluster's former side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ValidationError

from policies.models import PolicyRevision, ResourceQuota
from sync.passes import resolution
from sync.passes import undo as passes_undo
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, row, stored, sync

if TYPE_CHECKING:
    from sync.models import SyncedObject, SyncRun

pytestmark = pytest.mark.django_db
OURS, THEIRS = {"hard": {"pods": "7"}}, {"hard": {"pods": "9"}}


def in_conflict() -> Memory:
    """5 pods were agreed on; ours says 7, theirs 9."""
    memory = Memory("team")
    memory.put(quota({"pods": "5"}))
    memory.put(quota({"pods": "1"}, name="stays"))
    sync(memory)
    own(connected())
    edit({"pods": "7"})
    memory.put(quota({"pods": "9"}))
    sync(memory)
    return memory


def decide(choices: Any) -> None:
    ours = passes_undo.our_side(row())
    revision = ours.revision if ours else 0
    resolution.resolve(row(), choices=choices, revision=revision, user="me", reason="because")


def undo(number: int = 0, shown: SyncedObject | None = None) -> SyncRun:
    shown = shown or row()
    newest = next(iter(passes_undo.decisions(shown)), None)
    return passes_undo.undo(shown, number=number or (newest.number if newest else 1), user="me")


def both(memory: Memory) -> tuple[Any, Any]:
    return stored(), memory.spec("ResourceQuota", "rq")


@pytest.mark.parametrize("choices", ["ours", "theirs", {".spec.hard.pods": "theirs"}])
def test_what_was_not_written_yet_is_a_conflict_again(choices: Any) -> None:
    memory = in_conflict()
    decide(choices)
    undo()
    sync(memory)
    assert (row().state, both(memory)) == ("conflict", (OURS, THEIRS))


def test_taking_theirs_is_a_conflict_again_after_the_pass_too() -> None:
    memory = in_conflict()
    decide("theirs")
    sync(memory)
    assert row().state == "in-sync"
    assert undo().state == "waiting"
    sync(memory)
    assert (row().state, both(memory)) == ("conflict", (OURS, THEIRS))


@pytest.mark.parametrize("choices", ["ours", {".spec.hard.pods": "ours"}])
def test_a_cluster_that_was_overwritten_gets_back_what_it_had(choices: Any) -> None:
    memory = in_conflict()
    decide(choices)
    sync(memory)
    assert both(memory) == (OURS, OURS)
    undo()
    sync(memory)
    assert (row().state, both(memory)) == ("in-sync", (THEIRS, THEIRS))


def test_a_policy_that_was_deleted_comes_back_as_itself() -> None:
    memory = in_conflict()
    memory.remove("ResourceQuota", "rq")
    sync(memory)
    uid = ResourceQuota.objects.get(name="rq").uid
    decide("theirs")
    assert stored() is None
    undo()
    assert (stored(), ResourceQuota.objects.get(name="rq").uid) == (OURS, uid)


def test_an_object_that_was_brought_back_goes_again() -> None:
    memory = in_conflict()
    memory.remove("ResourceQuota", "rq")
    sync(memory)
    decide("ours")
    sync(memory)
    assert both(memory) == (OURS, OURS)
    undo()
    sync(memory)
    assert stored() is None
    assert ("delete", "ResourceQuota team/rq") in [(verb, what) for verb, what in memory.done]


def test_decisions_are_on_record_with_both_sides() -> None:
    in_conflict()
    decide("ours")
    [decision] = passes_undo.decisions(row())
    sides = decision.before["spec"]
    assert (decision.user, decision.reason) == ("me", "because")
    assert [sides[name]["spec"] for name in ("ours", "theirs")] == [OURS, THEIRS]
    assert sides["base"]["spec"] == {"hard": {"pods": "5"}}
    assert decision.after["spec"]["choices"] == "ours"


def refused(number: int = 0, shown: SyncedObject | None = None) -> str:
    with pytest.raises(ValidationError) as refusal:
        undo(number, shown)
    return str(refusal.value.code)


def test_undoing_needs_something_to_undo() -> None:
    in_conflict()
    assert refused() == "not_undone"
    decide("theirs")
    assert refused(number=99) == "not_undone"
    undo()
    assert refused() == "not_undone"


def test_what_was_edited_since_is_not_undone() -> None:
    in_conflict()
    decide("theirs")
    edit({"pods": "8"})
    assert refused() == "not_undone"
    assert stored() == {"hard": {"pods": "8"}}


def test_undoing_is_about_what_was_shown_and_needs_ownership() -> None:
    in_conflict()
    shown = row()
    decide("theirs")
    assert refused(shown=shown) == "changed"
    resolution.release_ownership(connected(), "me")
    assert refused() == "not_owned"
    assert not PolicyRevision.objects.filter(kind=passes_undo.KIND, action="restore").exists()
