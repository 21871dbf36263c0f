"""Policy sets as of an instant: authority, version, and what quotas did not count yet."""

from __future__ import annotations

import pytest
from django.utils import timezone

from engine.policy import Authority
from engine.resource_quota import unknown_names
from policies import history, services
from policies.history import policy_sets
from policies.models import PolicyRevision, ResourceQuota
from policies.services import observed
from tests import factories

pytestmark = pytest.mark.django_db


def authority_now() -> Authority:
    return history.load_at("prod", "team", timezone.now()).authority


def test_the_kinds_of_observations_are_the_services_own() -> None:
    assert policy_sets.NATIVE_POLICIES == observed.NATIVE_POLICIES
    assert policy_sets.COUNTED_QUOTAS == observed.COUNTED_QUOTAS


def test_the_api_server_has_the_authority_once_it_was_seen_to_have_all_policies() -> None:
    cluster = factories.cluster()
    services.set_authority(cluster=cluster, authority="native", user="ada")
    factories.limit_range({"type": "Container", "default": {"cpu": "1"}})
    assert authority_now() == Authority.PORTAL
    native = [("LimitRange", "team", "lr")]
    services.note_native(cluster=cluster, native=native, user="sync")
    then = timezone.now()
    services.note_native(cluster=cluster, native=[], user="sync")
    assert history.load_at("prod", "team", then).authority == Authority.NATIVE
    assert authority_now() == Authority.PORTAL


def test_a_name_is_unknown_until_the_time_it_was_counted() -> None:
    factories.resource_quota({"pods": "9", "services": "9"})
    ResourceQuota.objects.update(uncounted=["pods"])
    then = timezone.now()
    services.note_counted(
        cluster=factories.cluster(), quotas=services.uncounted(factories.cluster()), user="sync"
    )
    [quota] = history.load_at("prod", "team", then).resource_quotas
    assert unknown_names(quota) == ["pods"]
    [quota] = history.load_at("prod", "team", timezone.now()).resource_quotas
    assert unknown_names(quota) == []


def test_without_usage_nothing_is_known_of_a_quota() -> None:
    factories.resource_quota({"pods": "9"})
    found = history.load_at("prod", "team", timezone.now(), with_usage=False)
    assert unknown_names(found.resource_quotas[0]) == ["pods"]


def test_each_policy_has_the_number_of_its_revision() -> None:
    factories.limit_range({"type": "Container", "default": {"cpu": "1"}})
    then = timezone.now()
    factories.limit_range({"type": "Container", "default": {"cpu": "2"}})
    assert PolicyRevision.objects.filter(kind="LimitRange").count() == 2
    assert history.load_at("prod", "team", then).limit_ranges[0].revision == 1
