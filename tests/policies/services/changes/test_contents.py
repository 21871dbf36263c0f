"""Writes are put into a change set checked, with their bases, and taken out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ValidationError

from engine.policy import ENFORCEMENT_ANNOTATION, Enforcement
from policies.change_sets.content import content_hash
from policies.models import ChangeSet, LimitRange, PolicyRevision, ResourceQuota
from policies.models.changes import change_set
from policies.services import changes
from policies.services.changes import contents
from tests import factories
from tests.changes import AUTHOR, LR, change_of, cpu, limit, put, steps

if TYPE_CHECKING:
    from policies.models import ChangeItem

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.namespace()


def only_item(change: ChangeSet) -> ChangeItem:
    item: ChangeItem = change.items.get()
    return item


def refused(change: ChangeSet, *manifests: dict[str, Any], **options: Any) -> list[tuple[Any, ...]]:
    with pytest.raises(changes.ItemsRefusedError) as caught:
        put(change, *manifests, **options)
    return [(each.key[2], each.code, each.path) for each in caught.value.problems]


def test_a_new_object_has_no_base() -> None:
    item = only_item(change_of(limit()))
    assert (item.action, item.base_revision, item.base) == ("add", 0, None)
    assert item.content == limit()
    assert not LimitRange.objects.exists()


def test_a_changed_object_has_the_stored_one_as_its_base() -> None:
    factories.apply(limit("1"))
    item = only_item(change_of(limit("2")))
    assert (item.action, item.base_revision) == ("change", 1)
    assert (item.base, item.content) == (limit("1"), limit("2"))
    assert cpu() == "1"


def test_a_deletion_has_no_content() -> None:
    factories.apply(limit("1"))
    change = change_of()
    deletion = changes.propose_deletion(factories.cluster(), LR)
    changes.put(change, proposals=[deletion], user=AUTHOR)
    item = only_item(change)
    assert (item.action, item.base_revision, item.base, item.content) == (
        "delete", 1, limit("1"), None,
    )  # fmt: skip


def test_another_mode_is_the_stored_object_in_that_mode() -> None:
    factories.apply(limit("1"))
    factories.priority_class()
    keys = [LR, ("LimitRange", "team", "gone"), ("PriorityClass", "", "high")]
    proposals = changes.propose_mode(factories.cluster(), keys, Enforcement.WARN)
    change = change_of()
    changes.put(change, proposals=proposals, user=AUTHOR)
    content = only_item(change).content
    assert content == limit("1", annotations={ENFORCEMENT_ANNOTATION: "warn"})


def test_the_base_is_the_revision_that_the_author_saw() -> None:
    factories.apply(limit("1"))
    factories.apply(limit("3"))
    change = change_of()
    put(change, limit("2"), based_on=1)
    item = only_item(change)
    assert (item.base_revision, item.base, item.content) == (1, limit("1"), limit("2"))


def test_a_revision_that_never_was_is_no_base() -> None:
    factories.apply(limit("1"))
    assert refused(change_of(), limit("2"), based_on=7) == [("lr", "unknown_revision", "")]


def test_an_object_that_is_not_there_is_not_deleted() -> None:
    deletion = changes.propose_deletion(factories.cluster(), LR)
    with pytest.raises(changes.ItemsRefusedError, match="LimitRange team/lr of prod: there is no"):
        changes.put(change_of(), proposals=[deletion], user=AUTHOR)


def test_all_that_is_wrong_is_named_and_nothing_is_put() -> None:
    change = change_of()
    wrong = limit("a lot", name="wrong")
    lost = limit(name="lost", namespace="gone")
    other = {"kind": "Pod", "metadata": {"name": "pod"}}
    assert refused(change, limit(), wrong, lost, other) == [
        ("pod", "unknown_kind", "kind"),
        ("wrong", "FieldValueInvalid", "spec.limits[0].max[cpu]"),
        ("lost", "unknown_namespace", "metadata.namespace"),
    ]
    assert not change.items.exists()
    assert steps(change) == []


def test_a_later_write_replaces_the_earlier_one_of_the_same_object() -> None:
    change = change_of(limit("1"), limit("5", name="other"))
    put(change, limit("2"))
    assert {item.name: item.content for item in change.items.all()} == {
        "lr": limit("2"),
        "other": limit("5", name="other"),
    }


def test_a_write_that_changes_nothing_is_left_out() -> None:
    factories.apply(limit("1"))
    change = change_of()
    assert put(change, limit("1")) == []
    assert not change.items.exists()
    assert steps(change) == []


def test_a_write_back_to_the_base_takes_the_object_out() -> None:
    factories.apply(limit("1"))
    change = change_of(limit("2"))
    assert put(change, limit("1")) == []
    assert not change.items.exists()
    change.refresh_from_db()
    assert change.content_hash == content_hash([])


def test_an_object_is_taken_out_by_its_key() -> None:
    change = change_of(limit(), limit(name="other"))
    changes.take_out(change, items=[change.items.get(name="lr").pk], user="bob")
    assert only_item(change).name == "other"
    assert steps(change)[-1] == ("bob", "edit", "draft", "draft")
    assert change.steps.last().note == "took out LimitRange team/lr of prod"


def test_an_object_of_another_change_is_not_taken_out() -> None:
    change, other = change_of(limit()), change_of(limit(name="other"))
    with pytest.raises(ValidationError, match="not in the change"):
        changes.take_out(change, items=[only_item(other).pk], user=AUTHOR)
    assert only_item(other).name == "other"


def test_every_edit_changes_the_hash_and_says_what_it_did() -> None:
    change = change_of(limit("1"))
    hashes = [change.content_hash]
    for edit in (
        lambda: put(change, limit("2")),
        lambda: put(change, limit(name="a"), limit(name="b")),
        lambda: changes.take_out(change, items=[change.items.get(name="a").pk], user=AUTHOR),
    ):
        edit()
        change.refresh_from_db()
        hashes.append(change.content_hash)
    assert len(set(hashes)) == 4
    assert change.content_hash == content_hash(item.to_content() for item in change.items.all())
    assert [(step.note, step.content_hash) for step in change.steps.all()] == [
        ("put LimitRange team/lr of prod", hashes[0]),
        ("put LimitRange team/lr of prod", hashes[1]),
        ("put 2 objects", hashes[2]),
        ("took out LimitRange team/a of prod", hashes[3]),
    ]


def test_an_edit_makes_a_submitted_change_a_draft_again() -> None:
    change = changes.submit(change_of(limit()), user=AUTHOR)
    put(change, limit("3"))
    assert ChangeSet.objects.get().state == "draft"
    assert steps(change)[-1] == (AUTHOR, "edit", "approved", "draft")


def test_a_change_has_a_bounded_number_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    assert change_set.MOST_ITEMS == 2_000
    monkeypatch.setattr(contents, "MOST_ITEMS", 1)
    change = change_of(limit())
    with pytest.raises(ValidationError, match="at most 1 objects"):
        put(change, limit(name="other"))
    assert only_item(change).name == "lr"


def test_objects_of_several_clusters_and_kinds_fit_one_change() -> None:
    factories.namespace(in_cluster="dev")
    change = change_of(limit(), factories.manifest("ResourceQuota", {"hard": {"pods": "1"}}))
    put(change, limit(), cluster="dev")
    assert [str(item) for item in change.items.all()] == [
        "LimitRange team/lr of dev",
        "LimitRange team/lr of prod",
        "ResourceQuota team/resourcequota of prod",
    ]
    assert not ResourceQuota.objects.exists()
    assert not PolicyRevision.objects.filter(kind="LimitRange").exists()
