"""The book of one transaction: few statements, later questions see earlier charges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from engine.decision import Charge as DecidedCharge
from engine.policy import PolicyRef
from engine.quantity import Quantity
from policies.db.clock import read_clock
from policies.ledger import OPENING_RESOURCE, Key
from policies.ledger import book as ledger_book
from policies.ledger.recount import recount
from policies.ledger.release import confirm, release
from policies.models import Charge, QuotaUsage
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db
REF = PolicyRef(kind="ResourceQuota", namespace="team", name="rq")
STATEMENTS = {"postgresql": 1, "sqlite": 3}


def amounts(**texts: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in texts.items()}


def decided(delta: str = "1", whole: str = "1") -> DecidedCharge:
    return DecidedCharge(quota=REF, delta=amounts(pods=delta), amounts=amounts(pods=whole))


@pytest.fixture
def quota() -> QuotaUsage:
    factories.resource_quota({"pods": "5"})
    return QuotaUsage.objects.get()


@pytest.fixture(autouse=True)
def _ledger_is_even(db: None) -> Iterator[None]:
    yield
    assert recount("prod") == []


def key_of(quota: QuotaUsage, uid: str = "u1") -> Key:
    return (quota.cluster_id, "pods", uid)


def open_book(quota: QuotaUsage, *uids: str, **needs: Any) -> ledger_book.Book:
    keys = [key_of(quota, uid) for uid in uids or ("u1",)]
    return ledger_book.open_book([quota.pk], keys, **needs)


def open_capped(quota: QuotaUsage, *uids: str) -> ledger_book.Book:
    """A book that knows how many objects of the quota's namespace wait."""
    return open_book(quota, *uids, places={(quota.cluster_id, "team"): 9})


def charge(quota: QuotaUsage, uid: str = "u1", **what: str) -> None:
    with transaction.atomic():
        book = open_book(quota, uid)
        book.charge(quota.pk, key_of(quota, uid), name="p", decided=decided(**what))
        book.write()


def used() -> Any:
    return QuotaUsage.objects.get().used


def test_two_statements_to_open_and_one_to_write(quota: QuotaUsage) -> None:
    uids = [f"u{number}" for number in range(20)]
    with CaptureQueriesContext(connection) as opening:
        book = open_book(quota, *uids)
    for uid in uids:
        book.charge(quota.pk, key_of(quota, uid), name="p", decided=decided())
    with CaptureQueriesContext(connection) as writing:
        book.write()
    assert (len(opening), len(writing)) == (2, STATEMENTS[connection.vendor])
    assert used() == {"pods": "20"}


def test_every_statement_names_the_cluster(quota: QuotaUsage) -> None:
    with CaptureQueriesContext(connection) as found:
        charge(quota)
        confirm("prod", resource="pods", uid="u1")
        release("prod", resource="pods", uid="u1")
    ledger = [
        query["sql"]
        for query in found
        if "policies_charge" in query["sql"] or "policies_quotausage" in query["sql"]
    ]
    assert ledger
    assert [sql for sql in ledger if "cluster_id" not in sql] == []


def test_nothing_asked_and_nothing_changed_need_no_statement(quota: QuotaUsage) -> None:
    with CaptureQueriesContext(connection) as found:
        ledger_book.open_book([], [key_of(quota)]).write()
        ledger_book.open_book([quota.pk], []).write()
    assert len(found) == 0


def test_a_confirmed_object_that_does_not_grow_writes_nothing(quota: QuotaUsage) -> None:
    charge(quota)
    confirm("prod", resource="pods", uid="u1")
    book = open_book(quota)
    book.charge(quota.pk, key_of(quota), name="p", decided=decided(delta="0"))
    with CaptureQueriesContext(connection) as found:
        book.write()
    assert len(found) == 0


def test_growth_into_amounts_that_are_held_shows_an_update_under_way(quota: QuotaUsage) -> None:
    charge(quota, delta="2", whole="2")
    confirm("prod", resource="pods", uid="u1")
    long_ago = read_clock().replace(year=2020)
    Charge.objects.update(updated=long_ago)
    # The object has shrunk to 1, which nobody has seen yet, and is to grow again.
    charge(quota, delta="1", whole="2")
    stored = Charge.objects.get()
    assert (stored.amounts, stored.state, used()) == ({"pods": "2"}, "confirmed", {"pods": "2"})
    assert stored.updated > long_ago


def test_a_second_write_writes_only_what_came_since(quota: QuotaUsage) -> None:
    book = open_book(quota, "u1", "u2")
    for uid in ("u1", "u2"):
        book.charge(quota.pk, key_of(quota, uid), name="p", decided=decided())
        book.write()
    with CaptureQueriesContext(connection) as found:
        book.write()
    assert (len(found), used()) == (0, {"pods": "2"})


def test_the_next_question_sees_the_last_charge(quota: QuotaUsage) -> None:
    book = open_book(quota, "u1", "u2")
    book.charge(quota.pk, key_of(quota), name="p", decided=decided())
    assert book.used(quota.pk, key_of(quota, "u2"), {}) == amounts(pods="1")
    assert book.used(quota.pk, key_of(quota), {}) == amounts(pods="0"), "net of its own"
    assert used() == {"pods": "0"}, "until it is written"


def test_amounts_that_were_given_out_stay_as_they_are(quota: QuotaUsage) -> None:
    book = open_book(quota)
    before = book.used(quota.pk, key_of(quota, "u2"), {})
    book.charge(quota.pk, key_of(quota), name="p", decided=decided())
    assert before == amounts(pods="0")


def test_a_quota_that_is_gone_is_absent(quota: QuotaUsage) -> None:
    book = ledger_book.open_book([quota.pk, quota.pk + 1], [key_of(quota)])
    assert (book.has(quota.pk), book.has(quota.pk + 1)) == (True, False)
    with pytest.raises(KeyError):
        book.used(quota.pk + 1, key_of(quota), {})


def test_another_cluster_reaches_no_quota(quota: QuotaUsage) -> None:
    other = factories.cluster("other").pk
    assert not ledger_book.open_book([quota.pk], [(other, "pods", "u1")]).has(quota.pk)
    book = ledger_book.open_book([quota.pk], [key_of(quota), (other, "pods", "u1")])
    with pytest.raises(KeyError):
        book.charge(quota.pk, (other, "pods", "u1"), name="p", decided=decided())


def test_the_same_object_of_another_cluster_is_another(quota: QuotaUsage) -> None:
    charge(quota)
    other = factories.cluster("other").pk
    book = ledger_book.open_book([quota.pk], [key_of(quota), (other, "pods", "u1")])
    assert book.used(quota.pk, (other, "pods", "u1"), {}) == amounts(pods="1")


def test_growth_takes_from_the_opening_balance_once() -> None:
    factories.resource_quota({"pods": "9"}, used={"pods": "3"})
    stored = QuotaUsage.objects.get()
    with transaction.atomic():
        book = open_book(stored, "u1", "u2", grown=[stored.pk])
        for uid in ("u1", "u2"):
            what = decided(delta="1", whole="3")
            book.charge(stored.pk, key_of(stored, uid), name="p", decided=what)
        book.write()
    # Of the second's two there is but one left in the balance: the other was never counted.
    assert used() == {"pods": "6"}
    opening = Charge.objects.get(resource=OPENING_RESOURCE)
    assert (opening.amounts, opening.object_name) == ({"pods": "0"}, "opening balance")


def test_balance_that_was_not_read_is_not_taken_for_empty(quota: QuotaUsage) -> None:
    book = open_book(quota)
    with pytest.raises(KeyError):
        book.charge(quota.pk, key_of(quota), name="p", decided=decided(delta="1", whole="3"))


def test_a_charge_that_comes_again_renews_its_reservation(quota: QuotaUsage) -> None:
    charge(quota)
    long_ago = read_clock().replace(year=2020)
    Charge.objects.update(reserved_at=long_ago)
    charge(quota)
    assert Charge.objects.get().reserved_at > long_ago


def test_what_is_confirmed_meanwhile_stays_confirmed(quota: QuotaUsage) -> None:
    charge(quota)
    with transaction.atomic():
        book = open_book(quota)
        Charge.objects.update(state="confirmed")
        book.charge(quota.pk, key_of(quota), name="p", decided=decided())
        book.write()
    assert Charge.objects.get().state == "confirmed"


def test_a_long_name_is_cut(quota: QuotaUsage) -> None:
    book = open_book(quota)
    book.charge(quota.pk, key_of(quota), name="n" * 300, decided=decided())
    book.write()
    assert Charge.objects.get().object_name == "n" * 253


class TestCap:
    """How many objects of one namespace may wait for their confirmation."""

    def test_the_next_one_is_over(self, quota: QuotaUsage) -> None:
        charge(quota, "u1")
        book = open_capped(quota, "u2", "u3")
        place = (quota.cluster_id, "team")
        assert not book.over_cap(*place, 2, key=key_of(quota, "u2"))
        book.charge(quota.pk, key_of(quota, "u2"), name="p", decided=decided())
        assert book.over_cap(*place, 2, key=key_of(quota, "u3"))
        book.write()
        assert book.over_cap(*place, 2, key=key_of(quota, "u3"))

    def test_what_is_charged_already_needs_no_room(self, quota: QuotaUsage) -> None:
        charge(quota, "u1")
        book = open_capped(quota, "u1")
        assert not book.over_cap(quota.cluster_id, "team", 1, key=key_of(quota))
        assert book.over_cap(quota.cluster_id, "team", 1)

    def test_nothing_is_over_without_a_limit_and_nothing_more_is_asked(
        self, quota: QuotaUsage
    ) -> None:
        charge(quota, "u1")
        book = open_capped(quota, "u2")
        with CaptureQueriesContext(connection) as found:
            assert not book.over_cap(quota.cluster_id, "team", 0)
            assert book.over_cap(quota.cluster_id, "team", 1)
        assert len(found) == 0

    def test_objects_are_counted_not_charges(self, quota: QuotaUsage) -> None:
        charge(quota, "u1")
        factories.resource_quota({"pods": "5"}, name="other")
        second = QuotaUsage.objects.exclude(pk=quota.pk).get()
        charge(second, "u1")
        book = open_capped(quota, "u2")
        assert not book.over_cap(quota.cluster_id, "team", 2, key=key_of(quota, "u2"))

    def test_the_confirmed_other_namespaces_and_clusters_do_not_count(
        self, quota: QuotaUsage
    ) -> None:
        charge(quota, "u1")
        confirm("prod", resource="pods", uid="u1")
        book = open_capped(quota, "u1", "u2")
        assert not book.over_cap(quota.cluster_id, "team", 1)
        grown = decided(delta="1", whole="2")
        book.charge(quota.pk, key_of(quota), name="p", decided=grown)
        assert not book.over_cap(quota.cluster_id, "team", 1), "growth needs no confirmation"
        book.write()
        charge(quota, "u3")
        book = open_capped(quota, "u2")
        assert not book.over_cap(quota.cluster_id, "elsewhere", 1)
        assert not book.over_cap(quota.cluster_id + 1, "team", 1)


@pytest.mark.django_db(transaction=True)
def test_outside_of_a_transaction_there_is_no_book() -> None:
    factories.resource_quota({"pods": "5"})
    with pytest.raises(transaction.TransactionManagementError):
        open_book(QuotaUsage.objects.get())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, "8", id="new"),
        pytest.param({"delta": "1", "whole": "3"}, "3", id="grown"),
        pytest.param({"total": amounts(pods="8", cpu="1")}, "1", id="of-other-names"),
    ],
)
def test_sum_that_was_made_is_taken_for_new_objects_alone(
    quota: QuotaUsage, change: dict[str, Any], expected: str
) -> None:
    total = change.pop("total", amounts(pods="8"))
    with transaction.atomic():
        book = open_book(quota, grown=[quota.pk])
        book.charge(quota.pk, key_of(quota), name="p", decided=decided(**change), total=total)
        book.write()
    found = used()
    QuotaUsage.objects.update(used={"pods": str(Charge.objects.get().amounts["pods"])})
    assert found == {"pods": expected}
