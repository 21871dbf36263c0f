"""Which policies refused how many decisions, and how many they would have."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent, Tally, decision_id, partitions
from admission.models.tally import STEP, stretch_of
from admission.record import policy_hits
from admission.record.policy_hits import PolicyHits, hits_since
from tests import people

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
    return dict(hits_since(NOW - DAY).by_policy)


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


def test_refusals_without_a_policy_and_of_other_days_are_none_of_a_policy() -> None:
    refused(1, None)
    refused(2, RQ, ago=DAY + timedelta(minutes=1))
    decided(3)
    assert hits() == {}


def test_clusters_are_told_apart() -> None:
    refused(1, RQ)
    refused(2, RQ, cluster="other")
    assert set(hits()) == {OF_RQ, ("other", *OF_RQ[1:])}


def test_different_texts_of_one_policy_add_up_in_three_statements(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(20):
        violations = [found_in(RQ, message=f"used {number}")]
        decided(number, verdict="denied", code=403, violations=violations)
    with django_assert_num_queries(3):
        assert hits() == {OF_RQ: of_last_hour(denied=20)}


def test_of_many_decisions_the_newest_count_and_the_moment_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_hits, "READ", 3)
    for number in range(3):
        refused(number, RQ)
    whole = hits_since(NOW - DAY)
    assert (whole.is_cut, whole.since) == (False, NOW - DAY)
    refused(9, RQ)
    cut = hits_since(NOW - DAY)
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


def tally() -> None:
    Tally.objects.bring_up_to_date(now=NOW + timedelta(seconds=1), until=time.monotonic() + 60)


def decided_all_day() -> None:
    """Decisions of 25 hours, of three places, ever again in the same stretches."""
    places = [("prod", "team"), ("prod", "other"), ("edge", "team")]
    for number in range(80):
        cluster, namespace = places[number % 3]
        found = [found_in(RQ if number % 2 else MP, f"used {number % 7}"), found_in(None)]
        ago = timedelta(minutes=19 * number + 1)
        if number % 4 == 1:
            decided(number, ago=ago, cluster=cluster, namespace=namespace, observed=found)
        else:
            refused(number, RQ, MP, ago=ago, cluster=cluster, namespace=namespace)


@pytest.mark.parametrize(
    "place", [{}, {"cluster": "prod"}, {"cluster": "prod", "namespace": "123"}]
)
def test_tallies_and_decisions_give_the_same_hits(place: dict[str, str]) -> None:
    decided_all_day()
    for number in range(3):
        refused(100 + number, MP, ago=timedelta(hours=3), namespace="123")
    read = hits_since(NOW - DAY, **place)
    tally()
    tallied = hits_since(NOW - DAY, **place)
    assert numbers_of(tallied) == numbers_of(read) != {}
    assert (tallied.since, tallied.is_cut) == (NOW - DAY, False)


def numbers_of(found: policy_hits.RecentHits) -> dict[Any, tuple[int, int]]:
    return {key: (each.denied, each.would_deny) for key, each in found.by_policy.items()}


def test_hits_are_of_what_somebody_may_see() -> None:
    decided_all_day()
    ada = people.person("ada", cluster="prod", namespace="team")
    read = numbers_of(hits_since(NOW - DAY, user=ada))
    whole = numbers_of(hits_since(NOW - DAY))
    tally()
    assert numbers_of(hits_since(NOW - DAY, user=ada)) == read != whole
    assert {cluster for cluster, *_ in read} == {"prod"}


def test_tallied_hits_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    decided_all_day()
    whole = numbers_of(hits_since(NOW - DAY))
    monkeypatch.setattr(policy_hits, "READ", 3)
    assert hits_since(NOW - DAY).is_cut
    tally()
    found = hits_since(NOW - DAY)
    assert (found.is_cut, numbers_of(found)) == (False, whole)


def test_of_too_many_decisions_since_the_newest_tally_the_newest_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decided_all_day()
    tally()
    monkeypatch.setattr(policy_hits, "READ_LIVE", 0)
    found = hits_since(NOW - DAY)
    newest = AuditEvent.objects.newest(1)[0]
    assert (found.is_cut, found.since, found.by_policy) == (True, newest.created, {})


def test_where_tallies_have_no_hits_decisions_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    decided_all_day()
    whole = numbers_of(hits_since(NOW - DAY))
    tally()
    older = Tally.objects.filter(start__lte=NOW - DAY / 2)
    older.update(hits=None, namespaces=None)
    assert numbers_of(hits_since(NOW - DAY)) == whole
    monkeypatch.setattr(policy_hits, "READ", 3)
    found = hits_since(NOW - DAY)
    last = older.order_by("-start")[0].start
    assert found.is_cut
    assert NOW - DAY < found.since < last + STEP
    assert stretch_of(found.since) <= last


def test_hits_of_tallies_lie_in_the_part_of_their_time() -> None:
    for number, hours in enumerate((2, 12, 23)):
        refused(number, RQ, ago=timedelta(hours=hours, minutes=-30))
    decided(9)
    tally()
    parts = hits()[OF_RQ].parts
    assert sum(parts) == 3
    assert (sum(parts[:2]), sum(parts[11:13]), sum(parts[21:23])) == (1, 1, 1)
