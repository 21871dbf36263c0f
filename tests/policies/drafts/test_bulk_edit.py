"""Edits of many policies: planned without a write, saved all or none, taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies import services
from policies.drafts import bulk_edit
from policies.drafts.bulk_edit import Edit
from policies.drafts.bulk_import import OvertakenError
from policies.models import LimitRange, PolicyRevision, PriorityClass, ResourceQuota
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
POD = {"type": "Container", "max": {"cpu": "2"}}
RANGE = ("prod", ("LimitRange", "team", "lr"))
QUOTA = ("prod", ("ResourceQuota", "team", "rq"))
AUDIT = Edit(action="mode", mode="audit")
DELETE = Edit(action="delete")


def anybody(_action: str, _cluster: str, _key: tuple[str, str, str]) -> bool:
    return True


def quota(cluster: str = "prod", namespace: str = "team", name: str = "rq") -> Any:
    document = factories.manifest(
        "ResourceQuota", {"hard": {"pods": "3"}}, name=name, namespace=namespace
    )
    return factories.apply(document, in_cluster=cluster)


@pytest.fixture
def stored() -> None:
    factories.limit_range(POD)
    quota()


def save(edit: Edit, *policies: Any, may: Any = anybody) -> bulk_edit.Batch:
    shown = bulk_edit.plan(policies, edit, may=may)
    return bulk_edit.save(shown, user="eva", reason="because")


def modes() -> dict[str, str]:
    found: dict[str, str] = {}
    for model in (LimitRange, ResourceQuota):
        found |= {each.name: each.enforcement for each in model.objects.all()}
    return found


@pytest.mark.usefixtures("stored")
def test_a_plan_writes_nothing_and_says_what_would_change() -> None:
    written = PolicyRevision.objects.count()
    shown = bulk_edit.plan(
        [RANGE, QUOTA, ("prod", ("LimitRange", "team", "gone"))], AUDIT, may=anybody
    )
    assert [(each.key[0], each.verb) for each in shown.edits] == [
        ("LimitRange", "changed"),
        ("ResourceQuota", "changed"),
    ]
    assert all(each.changes for each in shown.edits)
    assert (PolicyRevision.objects.count(), modes()) == (
        written,
        {"lr": "enforce", "rq": "enforce"},
    )


@pytest.mark.usefixtures("stored")
def test_mode_is_changed_and_taken_back_with_reasons() -> None:
    quota("edge", name="far")
    batch = save(AUDIT, RANGE, QUOTA, ("edge", ("ResourceQuota", "team", "far")))
    assert modes() == {"lr": "audit", "rq": "audit", "far": "audit"}
    assert [name for name, _ in batch] == ["prod", "edge"]
    last = PolicyRevision.objects.filter(user="eva")
    assert {(each.reason, each.action) for each in last} == {("because", "update")}
    assert bulk_edit.undo(batch, may=anybody, user="eva") == 3
    assert modes() == {"lr": "enforce", "rq": "enforce", "far": "enforce"}
    assert PolicyRevision.objects.order_by("-id")[0].reason == "undone: because"


@pytest.mark.usefixtures("stored")
def test_what_has_the_mode_already_is_not_written() -> None:
    shown = bulk_edit.plan([RANGE], Edit(action="mode", mode="enforce"), may=anybody)
    assert ([each.verb for each in shown.edits], shown.written, shown.parts) == (
        ["unchanged"],
        [],
        (),
    )
    assert bulk_edit.save(shown, user="eva", reason="because") == ()


@pytest.mark.usefixtures("stored")
def test_mode_that_was_not_enforce_loses_its_annotation_alone() -> None:
    document = LimitRange.objects.get().to_manifest()
    annotations = {"policy.gatehouse.dev/enforcement": "warn", "owner": "x"}
    factories.apply({**document, "metadata": {**document["metadata"], "annotations": annotations}})
    save(Edit(action="mode", mode="enforce"), RANGE)
    assert LimitRange.objects.get().to_manifest()["metadata"]["annotations"] == {"owner": "x"}


@pytest.mark.usefixtures("stored")
def test_deleted_policies_come_back_with_their_uids() -> None:
    factories.priority_class()
    before = {str(each.uid) for each in (LimitRange.objects.get(), ResourceQuota.objects.get())}
    batch = save(DELETE, RANGE, QUOTA, ("prod", ("PriorityClass", "", "high")))
    assert not modes()
    assert not PriorityClass.objects.exists()
    assert bulk_edit.undo(batch, may=anybody, user="eva") == 3
    assert {
        str(each.uid) for each in (LimitRange.objects.get(), ResourceQuota.objects.get())
    } == before
    assert PriorityClass.objects.get().name == "high"


@pytest.mark.usefixtures("stored")
def test_copies_are_written_to_names_and_to_those_a_star_stands_for() -> None:
    for name in ("web-a", "web-b", "other"):
        factories.namespace(name)
    copy = Edit(action="copy", namespaces=("other", "web-*", "team", "nowhere"))
    shown = bulk_edit.plan([QUOTA], copy, may=anybody)
    assert {each.key[1]: each.verb for each in shown.edits} == {
        "other": "created",
        "web-a": "created",
        "web-b": "created",
        "nowhere": "refused",
    }
    batch = bulk_edit.save(shown, user="eva", reason="because")
    copied = ResourceQuota.objects.filter(name="rq").values_list("namespace__name", flat=True)
    assert set(copied) == {"team", "other", "web-a", "web-b"}
    assert bulk_edit.undo(batch, may=anybody, user="eva") == 3
    assert ResourceQuota.objects.get().namespace.name == "team"


@pytest.mark.usefixtures("stored")
def test_a_copy_with_another_name_stays_beside_its_original() -> None:
    save(Edit(action="copy", namespaces=("team",), name="second"), RANGE)
    assert set(LimitRange.objects.values_list("name", flat=True)) == {"lr", "second"}


def test_a_copied_quota_begins_with_nothing_used() -> None:
    document = factories.manifest("ResourceQuota", {"hard": {"pods": "3"}}, name="rq")
    factories.apply({**document, "status": {"hard": {"pods": "3"}, "used": {"pods": "2"}}})
    factories.namespace("other")
    save(Edit(action="copy", namespaces=("other",)), QUOTA)
    used = ResourceQuota.objects.get(namespace__name="other").to_manifest().get("status", {})
    assert str(used.get("used", {}).get("pods", "0")) == "0"


@pytest.mark.usefixtures("stored")
def test_two_policies_of_one_name_are_not_copied_onto_each_other() -> None:
    quota(namespace="second")
    factories.namespace("third")
    copy = Edit(action="copy", namespaces=("third",))
    shown = bulk_edit.plan([QUOTA, ("prod", ("ResourceQuota", "second", "rq"))], copy, may=anybody)
    assert sorted(each.verb for each in shown.edits) == ["created", "refused"]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    "edit", [AUDIT, DELETE, Edit(action="copy", namespaces=("team",), name="n")]
)
def test_what_the_person_may_not_write_is_left_out(edit: Edit) -> None:
    def only_quotas(_action: str, _cluster: str, key: tuple[str, str, str]) -> bool:
        return key[0] == "ResourceQuota"

    shown = bulk_edit.plan([RANGE, QUOTA], edit, may=only_quotas)
    assert {each.key[0] for each in shown.refused} == {"LimitRange"}
    assert {each.key[0] for each in shown.written} == {"ResourceQuota"}


@pytest.mark.usefixtures("stored")
def test_replacing_a_policy_needs_the_permission_to_change_it() -> None:
    quota(namespace="other")

    def may_add(action: str, _cluster: str, _key: tuple[str, str, str]) -> bool:
        return action == "add"

    copy = Edit(action="copy", namespaces=("other",))
    assert [each.verb for each in bulk_edit.plan([QUOTA], copy, may=may_add).edits] == ["refused"]


@pytest.mark.usefixtures("stored")
def test_an_outdated_plan_is_not_saved() -> None:
    shown = bulk_edit.plan([RANGE, QUOTA], DELETE, may=anybody)
    quota(name="meanwhile")
    with pytest.raises(OvertakenError):
        bulk_edit.save(shown, user="eva", reason="because")
    assert set(modes()) == {"lr", "rq", "meanwhile"}


def _written_since() -> None:
    services.apply_manifest(
        cluster=factories.cluster(),
        manifest=factories.manifest("ResourceQuota", {"hard": {"pods": "9"}}, name="rq"),
        user="bob",
    )


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("user", "since", "may", "error"),
    [
        ("eva", _written_since, anybody, OvertakenError),
        ("eva", lambda: None, lambda *_: False, PermissionError),
    ],
)
def test_an_edit_is_taken_back_as_a_whole_or_not(
    user: str, since: Callable[[], None], may: Any, error: type[Exception]
) -> None:
    batch = save(AUDIT, RANGE, QUOTA)
    since()
    before = modes()
    with pytest.raises(error):
        bulk_edit.undo(batch, may=may, user=user)
    assert modes() == before


@pytest.mark.usefixtures("stored")
def test_nobody_takes_back_an_edit_of_others() -> None:
    batch = save(AUDIT, RANGE)
    assert bulk_edit.undo(batch, may=anybody, user="bob") == 0
    assert modes()["lr"] == "audit"


@pytest.mark.usefixtures("stored")
def test_planning_many_asks_no_more_than_planning_one(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    keys = []
    for number in range(6):
        quota(name=f"q-{number}")
        keys.append(("prod", ("ResourceQuota", "team", f"q-{number}")))
    with django_assert_num_queries(10) as few:
        bulk_edit.plan(keys[:1], AUDIT, may=anybody)
    with django_assert_num_queries(len(few)):
        bulk_edit.plan(keys, AUDIT, may=anybody)
