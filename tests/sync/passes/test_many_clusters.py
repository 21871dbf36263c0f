"""Many clusters at once: what is left out, all or nothing, and what cannot be taken back."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from policies.models import PolicyRevision
from sync.models import ClusterConnection, SyncRun
from sync.passes import many_clusters
from sync.passes.many_clusters import ClusterPlan, ConnectionChangedError
from sync.runs import pause
from tests import factories
from tests.sync.pass_setup import connected

pytestmark = pytest.mark.django_db
NAMES = ("east", "west", "bare")


@pytest.fixture(autouse=True)
def fleet() -> None:
    connected("east")
    connected("west")
    factories.cluster("bare")


def anywhere(_permission: str, _cluster: str) -> bool:
    return True


def nowhere(_permission: str, _cluster: str) -> bool:
    return False


def paused() -> list[str]:
    found = ClusterConnection.objects.filter(is_paused=True).order_by("cluster__name")
    return list(found.values_list("cluster__name", flat=True))


def refusals(clusters: tuple[ClusterPlan, ...]) -> dict[str, str]:
    return {each.cluster.name: each.refusal for each in clusters}


def test_a_plan_says_what_is_left_out_and_changes_nothing() -> None:
    shown = many_clusters.plan(NAMES, "pause", may=anywhere)
    assert refusals(shown.clusters) == {"east": "", "west": "", "bare": "not connected"}
    refused = many_clusters.plan(NAMES, "sync", may=nowhere)
    assert set(refusals(refused.clusters).values()) == {"your role does not allow it"}
    assert (paused(), SyncRun.objects.count()) == ([], 0)


def test_a_pause_needs_a_reason() -> None:
    with pytest.raises(ValidationError) as caught:
        many_clusters.carry_out(NAMES, "pause", may=anywhere, user="ada", reason=" ")
    assert caught.value.code == "reason_required"
    assert paused() == []


def test_a_failure_at_one_cluster_leaves_all_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved = ClusterConnection.save

    def fail_at_west(self: ClusterConnection, **fields: object) -> None:
        if self.cluster.name == "west":
            raise RuntimeError("the disk is full")
        saved(self, **fields)  # type: ignore[arg-type]

    monkeypatch.setattr(ClusterConnection, "save", fail_at_west)
    with pytest.raises(RuntimeError, match="disk"):
        many_clusters.carry_out(NAMES, "pause", may=anywhere, user="ada", reason="x")
    assert paused() == []
    assert not PolicyRevision.objects.filter(reason="x").exists()


def test_a_pause_is_taken_back_as_a_whole_or_not_at_all() -> None:
    batch = many_clusters.carry_out(NAMES, "pause", may=anywhere, user="ada", reason="x").batch
    with pytest.raises(PermissionError):
        many_clusters.undo(batch, may=nowhere, user="ada")
    with pytest.raises(PermissionError):
        many_clusters.undo(batch, may=anywhere, user="bob")
    assert paused() == ["east", "west"]
    assert many_clusters.undo(batch, may=anywhere, user="ada") == 2
    assert paused() == []
    with pytest.raises(ConnectionChangedError):
        many_clusters.undo(batch, may=anywhere, user="ada")


def test_a_resumption_is_taken_back_with_the_reason_of_the_pause() -> None:
    east = ClusterConnection.objects.get(cluster__name="east").cluster
    pause.pause(east, user="bob", reason="a leak")
    batch = many_clusters.carry_out(NAMES, "resume", may=anywhere, user="ada").batch
    many_clusters.undo(batch, may=anywhere, user="ada")
    connection = ClusterConnection.objects.get(cluster__name="east")
    assert (connection.paused_by, connection.pause_reason) == ("ada", "a leak")
