"""A preview of ownership judges both sides, as they were last seen, as if the place were owned."""

from __future__ import annotations

import pytest

from policies.managed_fields import normal
from sync.enforcement.ownership_preview import preview_ownership
from sync.models import SyncedObject, SyncOwnership
from tests import factories
from tests.sync.enforcement import world

pytestmark = pytest.mark.django_db


def seen(pods: str, *, base: str | None = None, name: str = "rq", namespace: str = "team") -> None:
    """An object of the cluster, and what both sides agreed on."""
    sides = [
        factories.manifest("ResourceQuota", {"hard": {"pods": p}}, name=name, namespace=namespace)
        for p in (pods, base or pods)
    ]
    world.both_sides(
        factories.cluster(),
        "unowned",
        name=name,
        namespace=namespace,
        live=sides[0],
        theirs=normal(sides[0]),
        base=normal(sides[1]),
    )


def actions(**place: str) -> dict[str, str]:
    found = preview_ownership(factories.cluster(), **place)
    return {f"{each.key.namespace}/{each.key.name}": each.verdict.action for each in found}


def test_our_edits_and_new_policies_would_be_written() -> None:
    world.quota({"pods": "5"})
    world.quota({"pods": "9"}, name="same")
    world.quota({"pods": "1"}, name="new", namespace="other")
    seen("3")
    seen("9", name="same")
    assert actions() == {"other/new": "create", "team/rq": "update", "team/same": "none"}
    [changed] = [e for e in preview_ownership(factories.cluster()) if e.verdict.action == "update"]
    assert changed.to_json()["differences"] == [
        {"field": ".spec.hard.pods", "ours": "5", "theirs": "3"}
    ]
    assert not SyncOwnership.objects.exists()


def test_a_place_leaves_out_the_rest() -> None:
    for name, namespace in (("a", "team"), ("b", "team"), ("c", "other")):
        world.quota({"pods": "1"}, name=name, namespace=namespace)
    assert set(actions(namespace="team")) == {"team/a", "team/b"}
    assert set(actions(namespace="team", kind="ResourceQuota", name="b")) == {"team/b"}


def test_what_we_deleted_would_be_deleted_and_what_both_changed_is_a_conflict() -> None:
    world.quota({"pods": "5"})
    seen("3", base="1")
    seen("9", name="gone")
    assert actions() == {"team/gone": "delete", "team/rq": "conflict"}
    SyncedObject.objects.filter(name="gone").update(gone="2026-01-01T00:00Z")
    assert actions() == {"team/rq": "conflict"}
