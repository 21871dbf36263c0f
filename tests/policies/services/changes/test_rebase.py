"""An object whose base has moved is merged with what is stored, and conflicts are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ValidationError

from policies import services
from policies.change_sets.states import StepRefusedError
from policies.models import LimitRange
from policies.services import changes
from tests import factories
from tests.changes import AUTHOR, LR, change_of, cpu, limit, published, put, steps

if TYPE_CHECKING:
    from policies.models import ChangeItem, ChangeSet

pytestmark = pytest.mark.django_db

CPU = "spec.limits.Container.max.cpu"
LABELS = {"team": "a"}


@pytest.fixture(autouse=True)
def _base() -> None:
    factories.apply(limit("1"))


def rebased(change: ChangeSet, **options: Any) -> ChangeItem | None:
    return changes.rebase(change, item=change.items.get().pk, user=AUTHOR, **options)


def delete_stored() -> None:
    services.delete_policy(policy=LimitRange.objects.get(), user="x")


def conflicts_of(change: ChangeSet) -> tuple[str, ...]:
    with pytest.raises(changes.MergeConflictError) as caught:
        rebased(change)
    return caught.value.paths


def test_changes_of_other_members_are_merged_and_published() -> None:
    change = change_of(limit("2"))
    factories.apply(limit("1", labels=LABELS))
    item = rebased(change)
    assert item is not None
    assert (item.base_revision, item.base) == (2, limit("1", labels=LABELS))
    assert item.content == limit("2", labels=LABELS)
    assert change.steps.last().note == "merged LimitRange team/lr of prod"
    published(change)
    assert LimitRange.objects.get().to_manifest() == limit("2", labels=LABELS)


@pytest.mark.parametrize(("keep", "kept"), [("mine", "2"), ("theirs", "3")])
def test_a_member_that_both_changed_is_named_until_a_side_is_chosen(keep: str, kept: str) -> None:
    change = change_of(limit("2", labels=LABELS))
    factories.apply(limit("3"))
    before = change.items.get().to_content()
    assert conflicts_of(change) == (CPU,)
    assert change.items.get().to_content() == before
    item = rebased(change, keep=keep)
    assert item is not None
    assert item.content == limit(kept, labels=LABELS)


def test_nothing_is_left_where_they_did_the_same() -> None:
    change = change_of(limit("2"))
    factories.apply(limit("2"))
    assert rebased(change) is None
    assert not change.items.exists()
    assert steps(change)[-1] == (AUTHOR, "edit", "draft", "draft")


def test_a_change_of_what_was_deleted_makes_it_again_or_is_dropped() -> None:
    change = change_of(limit("2"))
    delete_stored()
    assert conflicts_of(change) == ("",)
    item = rebased(change, keep="mine")
    assert item is not None
    assert (item.action, item.base_revision) == ("add", 0)
    published(change)
    assert cpu() == "2"


def test_a_change_of_what_was_deleted_gives_way() -> None:
    change = change_of(limit("2"))
    delete_stored()
    assert rebased(change, keep="theirs") is None
    assert not change.items.exists()


def test_a_deletion_of_what_was_changed_is_asked_about() -> None:
    change = change_of()
    deletion = changes.propose_deletion(factories.cluster(), LR)
    changes.put(change, proposals=[deletion], user=AUTHOR)
    factories.apply(limit("3"))
    assert conflicts_of(change) == ("",)
    item = rebased(change, keep="mine")
    assert item is not None
    assert (item.action, item.base) == ("delete", limit("3"))
    published(change)
    assert cpu() == ""


def test_a_merge_that_breaks_a_rule_is_refused() -> None:
    ratio = {"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "4"}}
    mine = factories.manifest("LimitRange", {"limits": [ratio]}, name="pair")
    factories.apply(mine)
    raised = {**ratio, "default": {"cpu": "3"}}
    change = change_of(factories.manifest("LimitRange", {"limits": [raised]}, name="pair"))
    lowered = {"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "4"}}
    with pytest.raises(ValidationError):
        factories.apply(factories.manifest("LimitRange", {"limits": [lowered]}, name="pair"))
    lowered["default"] = {"cpu": "2"}
    factories.apply(factories.manifest("LimitRange", {"limits": [lowered]}, name="pair"))
    with pytest.raises(changes.ItemsRefusedError) as caught:
        rebased(change, keep="mine")
    assert caught.value.problems[0].path.startswith("spec.limits[0]")


def test_an_object_of_another_change_is_not_merged() -> None:
    change, other = change_of(limit("2")), change_of(limit("3"))
    with pytest.raises(ValidationError, match="not in the change"):
        changes.rebase(change, item=other.items.get().pk, user=AUTHOR)


def test_a_published_change_is_not_merged() -> None:
    done = published(change_of(limit("2")))
    with pytest.raises(StepRefusedError):
        rebased(done)


def test_what_was_seen_long_ago_is_merged_with_what_is_stored_now() -> None:
    factories.apply(limit("1", labels=LABELS))
    change = change_of()
    put(change, limit("2"), based_on=1)
    item = rebased(change)
    assert item is not None
    assert item.content == limit("2", labels=LABELS)
