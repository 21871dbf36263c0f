"""Which policies refused how many decisions, and how many they would have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent, decision_id, partitions
from admission.record import policy_hits
from admission.record.policy_hits import PolicyHits, hits_since, observed_since

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
RQ = {"kind": "ResourceQuota", "namespace": "team", "name": "rq", "revision": 1}
MP = {"kind": "MetadataPolicy", "namespace": "team", "name": "mp", "revision": 1}
OF_RQ = ("prod", "ResourceQuota", "team", "rq")
OF_MP = ("prod", "MetadataPolicy", "team", "mp")


def decided(number: int, *, ago: timedelta = timedelta(minutes=1), **fields: Any) -> None:
    moment = int((NOW - ago).timestamp() * 1000) - number
    made = {"cluster": "prod", "namespace": "team", "kind": "Pod", "phase": "validate"}
    made |= {"verdict": "allowed", "code": 200, "duration_us": 1, **fields}
    made["reasons"] = " Some " if fields else ""
    partitions.ensure(NOW - ago)
    AuditEvent(id=decision_id.encode(moment, number), **made).save()


def found_in(policy: dict[str, Any] | None, message: str = "no") -> dict[str, Any]:
    return {"reason": "Some", "field": "", "message": message, "policy": policy}


def refused(number: int, *policies: dict[str, Any] | None, **fields: Any) -> None:
    violations = [found_in(policy) for policy in policies]
    decided(number, verdict="denied", code=403, violations=violations, **fields)


def hits() -> dict[Any, PolicyHits]:
    return dict(hits_since(AuditEvent.objects.all(), NOW - DAY).by_policy)


def of_last_hour(**numbers: int) -> PolicyHits:
    made = PolicyHits(**numbers)
    made.parts[-1] = made.total
    return made


def test_a_policy_counts_once_for_each_decision_that_it_refused() -> None:
    refused(1, RQ)
    refused(2, RQ, RQ)
    refused(3, RQ, MP)
    assert hits() == {OF_RQ: of_last_hour(denied=3), OF_MP: of_last_hour(denied=1)}


def test_what_would_be_refused_is_counted_apart_also_beside_a_refusal() -> None:
    decided(1, observed=[found_in(MP)])
    refused(2, RQ, observed=[found_in(MP)])
    assert hits() == {OF_RQ: of_last_hour(denied=1), OF_MP: of_last_hour(would_deny=2)}
    assert hits()[OF_MP].total == 2


def test_what_is_only_observed_is_counted_alone_as_with_all_hits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_hits, "READ", 5)
    decided(1, observed=[found_in(MP), found_in(MP)])
    refused(2, RQ, observed=[found_in(MP), found_in(None)])
    decided(3, observed=[found_in(MP)], cluster="other")
    decided(4, observed=[found_in(RQ)], ago=DAY + timedelta(minutes=1))
    refused(5, RQ)
    decided(6)
    for number in range(6):
        expected = {key: each.would_deny for key, each in hits().items() if each.would_deny}
        assert dict(observed_since(AuditEvent.objects.all(), NOW - DAY)) == expected
        refused(10 + number, RQ, ago=timedelta(seconds=1))
    assert expected == {}


def test_refusals_without_a_policy_and_of_other_days_are_none_of_a_policy() -> None:
    refused(1, None)
    refused(2, RQ, ago=DAY + timedelta(minutes=1))
    decided(3)
    assert hits() == {}


def test_clusters_are_told_apart() -> None:
    refused(1, RQ)
    refused(2, RQ, cluster="other")
    assert set(hits()) == {OF_RQ, ("other", *OF_RQ[1:])}


def test_different_texts_of_one_policy_add_up_in_two_statements(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(20):
        violations = [found_in(RQ, message=f"used {number}")]
        decided(number, verdict="denied", code=403, violations=violations)
    with django_assert_num_queries(2):
        assert hits() == {OF_RQ: of_last_hour(denied=20)}


def test_of_many_decisions_the_newest_count_and_the_moment_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_hits, "READ", 3)
    for number in range(3):
        refused(number, RQ)
    whole = hits_since(AuditEvent.objects.all(), NOW - DAY)
    assert (whole.is_cut, whole.since) == (False, NOW - DAY)
    refused(9, RQ)
    cut = hits_since(AuditEvent.objects.all(), NOW - DAY)
    oldest = AuditEvent.objects.oldest(1)[0]
    assert (cut.is_cut, cut.since, dict(cut.by_policy)) == (
        True,
        oldest.created,
        {OF_RQ: of_last_hour(denied=3)},
    )


def test_hits_are_counted_by_parts_of_the_time() -> None:
    for number, ago in enumerate((10, 90, 95, 23 * 60 + 30)):
        refused(number, RQ, ago=timedelta(minutes=ago))
    assert hits()[OF_RQ].parts == [1, *[0] * 21, 2, 1]
