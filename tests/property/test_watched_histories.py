"""Random histories of a watched cluster: the ledger ends as the cluster, and never frees too much.

``WATCH_SEEDS`` sets how many histories are played; each is fixed by its number.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from django.db import transaction

from engine.quantity import ZERO
from policies.ledger.entries import replay, start_of
from policies.ledger.recount import recount, settle
from policies.models import LedgerEntry, Namespace, ResourceQuota, ResourceQuotaRow
from tests import factories
from tests.pretended_follower import HARD
from tests.watched_cluster import WatchedCluster, used_in_ledger

if TYPE_CHECKING:
    from uuid import UUID

    from engine.resource_list import ResourceList

pytestmark = [pytest.mark.django_db, pytest.mark.no_cover]
SEEDS = int(os.environ.get("WATCH_SEEDS", "100"))
EVENTS = 40
PARTS = 20


@pytest.fixture
def quotas(db: None) -> dict[str, ResourceQuota]:
    place: Namespace = factories.namespace()
    made = {}
    for name, hard in HARD.items():
        quota = made[name] = ResourceQuota.objects.create(namespace=place, name=name)
        ResourceQuotaRow.objects.bulk_create(
            ResourceQuotaRow(quota=quota, resource=resource, hard=str(limit))
            for resource, limit in hard.items()
        )
        settle(quota)
    return made


def only_tracked(totals: dict[UUID, ResourceList]) -> dict[UUID, ResourceList]:
    """As ``used`` has it: each name of ``hard``, whether or not something is used."""
    return {
        uid: {name: totals.get(uid, {}).get(name, ZERO) for name in used}
        for uid, used in used_in_ledger().items()
    }


def judge_journal() -> None:
    """The journal tells of every change: replayed, it ends with what the ledger says."""
    entries = list(LedgerEntry.objects.order_by("id"))
    replayed = replay(entries)
    ends = {uid: moments[-1].used for uid, moments in replayed.items()}
    assert only_tracked(ends) == used_in_ledger()
    assert all(
        amount.nano > 0 for line in replayed.values() for at in line for amount in at.used.values()
    )
    # The first half may have been removed by its age.
    late = entries[len(entries) // 2 :]
    again = replay(late, start=start_of(late, ends))
    assert {uid: moments[-1] for uid, moments in again.items()} == {
        uid: replayed[uid][-1] for uid in again
    }


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(PARTS))
def test_the_ledger_ends_as_the_cluster(part: int, quotas: dict[str, ResourceQuota]) -> None:
    cluster_id = factories.cluster().pk
    for seed in range(part, SEEDS, PARTS):
        with transaction.atomic():
            history = WatchedCluster(cluster_id, quotas, seed)
            try:
                for _ in range(EVENTS):
                    history.play()
                history.come_to_rest()
                assert used_in_ledger() == history.used_in_cluster()
                assert recount("prod") == []
                judge_journal()
            except AssertionError as error:
                error.add_note(f"history {seed}: {' '.join(history.told)}")
                raise
            transaction.set_rollback(True)
