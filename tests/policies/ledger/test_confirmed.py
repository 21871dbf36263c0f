"""Confirmed amounts: what is reserved does not count, what was there before the ledger does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.resource_list import to_json
from policies.ledger.confirmed import confirmed_amounts
from policies.ledger.release import confirm, release
from tests import builders, charges, factories

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

    from policies.models import ResourceQuota

pytestmark = pytest.mark.django_db


def reserve(*names: str, cpu: str = "1") -> None:
    for name in names:
        made = builders.pod(builders.container(requests={"cpu": cpu}), name=name, uid=name)
        assert charges.admit(builders.request(made, namespace="team", uid=name)) == [True]


def confirmed(quota: ResourceQuota) -> dict[str, str]:
    return to_json(confirmed_amounts(quota.owner.pk, [quota.pk])[quota.pk])


def test_only_what_was_seen_counts() -> None:
    quota = factories.resource_quota({"pods": "9", "requests.cpu": "9", "services": "1"})
    reserve("a", "b")
    assert confirmed(quota) == {"pods": "0", "requests.cpu": "0", "services": "0"}
    confirm("prod", resource="pods", uid="a")
    assert confirmed(quota) == {"pods": "1", "requests.cpu": "1", "services": "0"}
    confirm("prod", resource="pods", uid="b")
    release("prod", resource="pods", uid="a")
    assert confirmed(quota) == {"pods": "1", "requests.cpu": "1", "services": "0"}


def test_the_opening_balance_counts() -> None:
    quota = factories.resource_quota({"pods": "9"}, used={"pods": "4"})
    reserve("a")
    assert confirmed(quota) == {"pods": "4"}


def test_names_that_nothing_tracks_are_left_out() -> None:
    quota = factories.resource_quota({"pods": "9", "limits.nvidia.com/gpu": "1"})
    assert confirmed(quota) == {"pods": "0"}


def test_each_quota_has_its_own_reservations() -> None:
    wide = factories.resource_quota({"pods": "9"}, name="wide")
    batch = factories.resource_quota({"pods": "9"}, name="batch", scopes=["BestEffort"])
    reserve("a")
    confirm("prod", resource="pods", uid="a")
    reserve("b")
    assert (confirmed(wide), confirmed(batch)) == ({"pods": "1"}, {"pods": "0"})


def test_other_clusters_and_deleted_quotas_have_none() -> None:
    quota = factories.resource_quota({"pods": "9"})
    other = factories.cluster("test")
    assert confirmed_amounts(other.pk, [quota.pk]) == {}
    assert confirmed_amounts(quota.owner.pk, [quota.pk + 1000]) == {}


def test_one_statement_for_all(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    quotas = [factories.resource_quota({"pods": "9"}, name=f"q{number}") for number in range(5)]
    reserve("a", "b")
    with django_assert_num_queries(1):
        found = confirmed_amounts(quotas[0].owner.pk, [quota.pk for quota in quotas])
    assert len(found) == len(quotas)


def test_a_statement_for_each_500(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    quota = factories.resource_quota({"pods": "9"}, used={"pods": "4"})
    with django_assert_num_queries(2):
        found = confirmed_amounts(quota.owner.pk, range(quota.pk - 500, quota.pk + 500))
    assert found.keys() == {quota.pk}
