"""How far back each record goes, and what lies before it."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from policies import history
from policies.models import LedgerEntry, PolicyRevision
from tests import builders, charges, factories

pytestmark = pytest.mark.django_db


def test_nothing_is_known_of_an_empty_portal() -> None:
    assert history.horizon() == history.Horizon(policies=None, roles=None, usage=None)


def test_policies_are_known_from_the_first_revision_of_their_cluster_on() -> None:
    factories.cluster("prod")
    factories.namespace("team", in_cluster="test")
    first = PolicyRevision.objects.filter(cluster="test").earliest("created")
    assert history.horizon("test").policies == first.created
    assert history.horizon().policies < first.created


def test_usage_is_known_from_the_first_entry_of_the_journal_on() -> None:
    factories.resource_quota({"pods": "9"})
    charges.admit(builders.request(builders.pod(uid="u"), namespace="team"))
    entry = LedgerEntry.objects.get()
    known = history.horizon()
    assert known.usage == entry.created
    assert known.knows_usage(entry.created)
    assert not known.knows_usage(entry.created - dt.timedelta(seconds=1))


def test_usage_is_not_known_from_before_its_retention(settings: object) -> None:
    factories.resource_quota({"pods": "9"})
    settings.GATEHOUSE_RETENTION_ALLOWED_DAYS = 3  # type: ignore[attr-defined]  # pytest-django's
    LedgerEntry.objects.bulk_create(
        [
            LedgerEntry(
                cluster=factories.cluster(),
                quota_uid="0" * 32,
                namespace="team",
                action="charge",
                cause="admission",
                created=timezone.now() - dt.timedelta(days=90),
            )
        ]
    )
    known = history.horizon().usage
    assert known is not None
    assert dt.timedelta(days=3) <= timezone.now() - known < dt.timedelta(days=4)


def test_an_instant_before_a_record_is_refused_with_its_beginning() -> None:
    begin = dt.datetime(2026, 1, 1, 8, 30, tzinfo=dt.UTC)
    history.require_known("policies", begin, begin)
    with pytest.raises(history.InstantError, match="begins at 2026-01-01T08:30Z") as caught:
        history.require_known("policies", begin, begin - dt.timedelta(seconds=1))
    assert caught.value.code == "before_horizon"
    with pytest.raises(history.InstantError, match="the record of usage is empty"):
        history.require_known("usage", None, begin)
