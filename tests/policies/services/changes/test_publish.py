"""A change set is published as a whole and reverted as a whole, or nothing of it is."""

from __future__ import annotations

import pytest

from policies import services
from policies.change_sets.states import StepRefusedError
from policies.models import Cluster, LimitRange, ObjectManagers, PolicyRevision, ResourceQuota
from policies.services import changes
from tests import factories
from tests.changes import (
    AUTHOR,
    LR,
    change_of,
    cpu,
    last_revision,
    limit,
    published,
    put,
    steps,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.namespace()


def quota(pods: str = "5") -> dict[str, object]:
    return factories.manifest("ResourceQuota", {"hard": {"pods": pods}}, name="rq")


def number_of(cluster: str) -> int:
    return Cluster.objects.get(name=cluster).policy_revision


def refused(step: object, change: object) -> list[tuple[str, str]]:
    with pytest.raises(changes.ItemsRefusedError) as caught:
        step(change, user="bob")  # type: ignore[operator]
    return [(each.key[2], each.code) for each in caught.value.problems]


def test_every_object_is_written_with_the_number_of_the_change_as_its_reason() -> None:
    factories.apply(limit("1"))
    factories.apply(limit("1", name="old"))
    change = change_of(limit("2"), quota())
    deletion = changes.propose_deletion(factories.cluster(), ("LimitRange", "team", "old"))
    changes.put(change, proposals=[deletion], user=AUTHOR)
    done = published(change)
    assert done.state == "done"
    assert (cpu(), cpu("old"), ResourceQuota.objects.get().name) == ("2", "", "rq")
    written = PolicyRevision.objects.filter(reason=f"change #{change.pk}: {change.title}")
    assert {(each.name, each.action, each.user) for each in written} == {
        ("lr", "update", "bob"),
        ("old", "delete", "bob"),
        ("rq", "create", "bob"),
    }
    assert len({each.cluster_revision for each in written}) == 1
    assert steps(change)[-1] == ("bob", "publish", "approved", "done")


def test_each_cluster_gets_one_write() -> None:
    factories.namespace(in_cluster="dev")
    before = {name: number_of(name) for name in ("dev", "prod")}
    change = change_of(limit(), limit(name="other"))
    put(change, limit(), limit(name="other"), cluster="dev")
    published(change)
    assert {name: number_of(name) - number for name, number in before.items()} == {
        "dev": 1, "prod": 1,
    }  # fmt: skip
    assert (cpu(cluster="dev"), cpu("other")) == ("2", "2")


def test_one_object_that_is_no_longer_valid_keeps_all_from_being_written() -> None:
    factories.namespace("doomed")
    factories.namespace(in_cluster="dev")
    change = change_of(limit(), limit(name="late", namespace="doomed"))
    put(change, limit(), cluster="dev")
    changes.submit(change, user=AUTHOR)
    doomed = factories.namespace("doomed")
    services.delete_namespace(namespace=doomed, user="x")
    before = number_of("prod"), number_of("dev"), steps(change)
    assert refused(changes.publish, change) == [("late", "unknown_namespace")]
    assert not LimitRange.objects.exists()
    assert (number_of("prod"), number_of("dev"), steps(change)) == before
    change.refresh_from_db()
    assert change.state == "approved"


def test_every_object_whose_base_moved_is_named_and_nothing_is_written() -> None:
    for name in ("lr", "gone", "same"):
        factories.apply(limit("1", name=name))
    change = change_of(*(limit("2", name=name) for name in ("lr", "gone", "same", "taken")))
    changes.submit(change, user=AUTHOR)
    factories.apply(limit("3"))
    factories.apply(limit("3", name="taken"))
    gone = LimitRange.objects.get(name="gone")
    services.delete_policy(policy=gone, user="x")
    with pytest.raises(changes.ItemsRefusedError) as caught:
        changes.publish(change, user="bob")
    assert {(each.key[2], each.message) for each in caught.value.problems} == {
        ("lr", "is at revision 2, the change is based on revision 1: merge it"),
        ("gone", "was deleted, the change is based on revision 1: merge it"),
        ("taken", "is at revision 1, the change is based on no object: merge it"),
    }
    assert {each.code for each in caught.value.problems} == {"base_moved"}
    assert (cpu(), cpu("same"), cpu("taken")) == ("3", "1", "3")


def test_an_object_that_was_deleted_and_made_again_has_moved() -> None:
    factories.apply(limit("1"))
    change = changes.submit(change_of(limit("2")), user=AUTHOR)
    services.delete_policy(policy=LimitRange.objects.get(), user="x")
    factories.apply(limit("1"))
    assert refused(changes.publish, change) == [("lr", "base_moved")]


def test_a_cluster_that_is_gone_is_named() -> None:
    factories.namespace(in_cluster="dev")
    change = change_of(limit())
    put(change, limit(), cluster="dev")
    changes.submit(change, user=AUTHOR)
    services.delete_cluster(cluster=Cluster.objects.get(name="dev"), user="x")
    assert refused(changes.publish, change) == [("lr", "unknown_cluster")]
    assert cpu() == ""


def test_only_the_content_that_was_seen_is_published() -> None:
    change = change_of(limit())
    seen = change.content_hash
    put(change, limit("9"))
    changes.submit(change, user=AUTHOR)
    with pytest.raises(changes.OutdatedChangeError):
        changes.publish(change, user="bob", seen=seen)
    assert cpu() == ""


def test_a_change_is_published_once() -> None:
    done = published(change_of(limit()))
    revision = last_revision().number
    with pytest.raises(StepRefusedError):
        changes.publish(done, user="bob")
    assert last_revision().number == revision


def test_a_revert_restores_what_was_there_in_one_write_of_each_cluster() -> None:
    first = factories.apply(limit("1"))
    kept_quota = factories.apply(quota())
    change = change_of(limit("2"), limit(name="new"))
    deletion = changes.propose_deletion(factories.cluster(), ("ResourceQuota", "team", "rq"))
    changes.put(change, proposals=[deletion], user=AUTHOR)
    done = published(change)
    assert not ResourceQuota.objects.exists()
    before = number_of("prod")
    assert changes.revert(done, user="eve", note="too tight").state == "reverted"
    assert (cpu(), cpu("new")) == ("1", "")
    assert LimitRange.objects.get().pk == first.pk
    assert ResourceQuota.objects.get().uid == kept_quota.uid, "it finds its charges"
    assert number_of("prod") == before + 1
    assert (last_revision().user, last_revision().reason) == (
        "eve",
        f"reverts change #{change.pk}: {change.title}",
    )
    assert steps(change)[-1] == ("eve", "revert", "done", "reverted")


def test_every_object_that_was_written_since_is_named_and_nothing_is_reverted() -> None:
    factories.apply(limit("1"))
    done = published(change_of(limit("2"), limit("2", name="other")))
    factories.apply(limit("3", name="other"))
    assert refused(changes.revert, done) == [("other", "written_since")]
    assert (cpu(), cpu("other")) == ("2", "3")
    done.refresh_from_db()
    assert done.state == "done"


def test_an_object_that_is_as_wanted_already_is_not_reverted() -> None:
    factories.apply(limit("2", name="other"))
    change = change_of(limit("2"), limit("3", name="other"))
    change.items.filter(name="other").update(content=limit("2", name="other"))
    done = published(change)
    assert done.items.get(name="other").written is None
    changes.revert(done, user="eve")
    assert (cpu(), cpu("other")) == ("", "2")


def test_what_a_set_proposed_belongs_to_the_set_whoever_publishes_it() -> None:
    factories.apply(limit("1", name="old"))
    change = change_of(limit("2", name="own"))
    cluster, writer = factories.cluster(), services.FieldWriter("git:platform", "abc")
    of_set = [
        changes.Proposed(cluster=cluster, key=LR, manifest=limit("2"), writer=writer),
        changes.Proposed(
            cluster=cluster, key=("LimitRange", "team", "old"), manifest=None, writer=writer
        ),
    ]
    changes.put(change, proposals=of_set, user=AUTHOR)
    published(change)
    rows = {row.name: row for row in ObjectManagers.objects.filter(kind="LimitRange")}
    assert {name: row.set for name, row in rows.items()} == {"lr": "platform", "own": ""}
    assert {each["manager"] for each in rows["lr"].fields.values()} == {"git:platform"}
    assert {each["commit"] for each in rows["lr"].fields.values()} == {"abc"}
    assert {each["manager"] for each in rows["own"].fields.values()} == {"ui:bob"}
    written = PolicyRevision.objects.filter(reason__startswith="change #")
    assert {each.user for each in written} == {"bob"}
    assert len({each.cluster_revision for each in written}) == 1


def test_a_merge_keeps_the_set_of_an_object_and_an_edit_by_a_person_does_not() -> None:
    factories.apply(limit("1"))
    writer = services.FieldWriter("git:platform")
    cluster = factories.cluster()
    proposal = changes.Proposed(cluster=cluster, key=LR, manifest=limit("2"), writer=writer)
    change = changes.create_change(title="From git", user=AUTHOR)
    changes.put(change, proposals=[proposal], user=AUTHOR)
    factories.apply(limit("1", labels={"a": "b"}))
    changes.rebase(change, item=change.items.get().pk, user=AUTHOR)
    assert change.items.get().manager == "git:platform"
    put(change, limit("3", labels={"a": "b"}))
    assert change.items.get().manager == ""
