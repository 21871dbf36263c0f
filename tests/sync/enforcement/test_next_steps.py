"""The next steps of a cluster are the first things that it lacks."""

from __future__ import annotations

import pytest
from django.utils import timezone

from policies.models import ClusterFollower
from sync.enforcement.next_steps import is_set_up, next_steps
from sync.enforcement.survey import survey
from sync.models import SyncOwnership, SyncState
from tests import factories
from tests.sync.enforcement import world

pytestmark = pytest.mark.django_db


def commands() -> list[str]:
    cluster = factories.cluster()
    return [step.command.split()[2] for step in next_steps(cluster, survey("prod"))]


def test_a_new_cluster_is_checked_read_and_owned() -> None:
    world.connected(factories.cluster())
    assert commands() == ["cluster_enforcement", "sync", "cluster_ownership"]


def test_missing_rights_and_webhooks_are_one_step() -> None:
    lacking = ["list pods", "patch resourcequotas"]
    world.connected(factories.cluster(), missing_permissions=lacking)
    world.called(factories.cluster(), canary_refused=None, configuration=world.MISSING)
    assert commands() == ["cluster_manifests", "sync", "cluster_ownership"]


def test_steps_go_when_they_are_done() -> None:
    cluster = world.complete()
    assert commands() == ["cluster_ownership"]
    assert not is_set_up(cluster, survey("prod"))
    SyncOwnership.objects.create(cluster=cluster, user="ada")
    assert (commands(), is_set_up(cluster, survey("prod"))) == ([], True)
    # A follower that rests for a moment does not make a cluster new again.
    ClusterFollower.objects.all().delete()
    assert (commands(), is_set_up(cluster, survey("prod"))) == (["follow"], True)
    SyncState.objects.update(last_success=None, stale_since=timezone.now())
    assert not is_set_up(cluster, survey("prod"))


def test_a_cluster_that_is_not_connected_is_connected_first() -> None:
    factories.cluster()
    assert commands()[0] == "connect_cluster"
