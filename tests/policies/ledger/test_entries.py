"""The journal of the ledger: an entry for each change, its cause, and what it explains."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Q

from engine.resource_list import parse, to_json
from policies.db.clock import read_clock
from policies.ledger import entries
from policies.ledger.live_objects import CompleteList, LiveObject, apply_list
from policies.ledger.observed import SeenObject, take_in
from policies.ledger.recount import recount
from policies.ledger.release import confirm_seen, release, release_orphans
from policies.ledger.unlisted import Unlisted, end_by_lease
from policies.models import Charge, LedgerEntry, QuotaUsage, ResourceQuota
from policies.models.edits import AppendOnlyError
from tests import builders, charges, factories

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db
ONE, TWO, NONE = {"pods": "1", "requests.cpu": "1"}, {"pods": "1", "requests.cpu": "2"}, {}
Line = tuple[str, dict[str, str], dict[str, str], str]


@pytest.fixture
def quota() -> ResourceQuota:
    return factories.resource_quota({"pods": "9", "requests.cpu": "9"})


@pytest.fixture(autouse=True)
def _journal_adds_up(db: None) -> Iterator[None]:
    yield
    if connection.in_atomic_block and connection.needs_rollback:
        return
    replayed = entries.replay(LedgerEntry.objects.order_by("id"))
    for usage in QuotaUsage.objects.all():
        moments = replayed.get(usage.quota_uid)
        used = moments[-1].used if moments else {}
        for name, amount in parse(usage.used).items():
            assert used.get(name, amount - amount) == amount, name


def admit(*uids: str, cpu: str = "1") -> None:
    for uid in uids:
        pod = builders.pod(builders.container(requests={"cpu": cpu}), uid=uid, namespace="team")
        request = builders.request(pod, namespace="team", uid=uid)
        assert charges.admit(request) == [True]


def lines(**which: Any) -> list[Line]:
    found = LedgerEntry.objects.filter(**which).order_by("id")
    return [(entry.action, entry.before, entry.after, entry.cause) for entry in found]


def age(seconds: int = 1000) -> None:
    moment = read_clock() - timedelta(seconds=seconds)
    Charge.objects.update(reserved_at=moment, updated=moment)


def see(quota: ResourceQuota, uid: str, amounts: dict[str, str], **more: Any) -> None:
    seen = SeenObject(
        uid=uid, name="p", namespace="team", counted={quota.uid: parse(amounts)}, **more
    )
    take_in(quota.owner.pk, "pods", [seen], received=read_clock())


def test_the_life_of_an_object_seen_by_a_watch(quota: ResourceQuota) -> None:
    admit("u1")
    see(quota, "u1", ONE)
    see(quota, "u1", TWO)
    see(quota, "u1", {}, is_gone=True)
    assert lines() == [
        ("charge", NONE, ONE, "admission"),
        ("confirm", ONE, ONE, "watch"),
        ("resize", ONE, TWO, "watch"),
        ("release", TWO, NONE, "watch"),
    ]
    entry = LedgerEntry.objects.latest("id")
    assert (entry.cluster, entry.quota_uid) == (quota.owner, quota.uid)
    assert (entry.namespace, entry.resource, entry.object_uid) == ("team", "pods", "u1")
    assert (entry.object_name, entry.reference) == ("p", "")
    assert abs((entry.created - read_clock()).total_seconds()) < 60


def test_an_object_that_comes_back_is_charged_anew(quota: ResourceQuota) -> None:
    admit("u1")
    release("prod", resource="pods", uid="u1", user="ada")
    admit("u1", cpu="2")
    assert lines()[1:] == [("release", ONE, NONE, "person"), ("charge", NONE, TWO, "admission")]
    assert LedgerEntry.objects.get(action="release").reference == "ada"


def test_what_lists_and_leases_do(quota: ResourceQuota) -> None:
    admit("u1", "u2", "u3")
    now = read_clock()
    confirm_seen("prod", resource="pods", seen=["u1", "u2"])
    age()
    release_orphans("prod", list_started=now, seen=["u1", "u2"])
    live = LiveObject(name="p", namespace="team", counted={quota.uid: parse(TWO)})
    apply_list(
        CompleteList(
            cluster_id=quota.owner.pk,
            resource="pods",
            started=now,
            objects={"u1": live, "u4": live},
            places={quota.uid: "team"},
            names={quota.uid: ("pods", "requests.cpu")},
        ),
        believe=True,
    )
    assert lines(object_uid="u1")[1:] == [
        ("confirm", ONE, ONE, "list"),
        ("resize", ONE, TWO, "list"),
    ]
    assert lines(object_uid="u2")[2:] == [("release", ONE, NONE, "list")]
    assert lines(object_uid="u3")[1:] == [("release", ONE, NONE, "lease")]
    assert lines(object_uid="u4") == [("add", NONE, TWO, "list")]


def test_opening_balances_and_figures() -> None:
    quota = factories.resource_quota({"pods": "9"}, used={"pods": "3"})
    assert lines() == [("opening", NONE, {"pods": "3"}, "figures")]
    admit("u1")
    age()
    end_by_lease(
        Unlisted(
            cluster_id=quota.owner.pk,
            resource="pods",
            read=read_clock(),
            places={quota.uid: "team"},
            figures={quota.uid: parse({"pods": "4"})},
        )
    )
    assert lines()[2:] == [
        ("opening", {"pods": "3"}, {"pods": "4"}, "figures"),
        ("release", {"pods": "1"}, NONE, "figures"),
    ]


def test_a_repair_is_entered_with_its_user(quota: ResourceQuota) -> None:
    admit("u1")
    QuotaUsage.objects.update(used={"pods": "5", "requests.cpu": "1"})
    recount("prod")
    assert len(lines()) == 1
    recount("prod", repair=True, user="ada")
    [repair] = LedgerEntry.objects.filter(action="recount")
    assert (repair.before, repair.after) == ({"pods": "5", "requests.cpu": "1"}, ONE)
    assert (repair.cause, repair.reference, repair.object_uid) == ("recount", "ada", "")


def test_a_difference_is_explained_by_what_used_lacks(quota: ResourceQuota) -> None:
    admit("u1", "u2")
    as_of_then = dict(QuotaUsage.objects.get().used)
    admit("u3")
    release("prod", resource="pods", uid="u1")
    admit("u4", cpu="2")
    used = QuotaUsage.objects.get().used
    found = entries.led_to(
        quota.owner.pk,
        quota.uid,
        "requests.cpu",
        used=as_of_then["requests.cpu"],
        charged=used["requests.cpu"],
    )
    # Without the last one it was right; without the last three as well.
    assert found.is_explained
    assert [entry.object_uid for entry in found.entries] == ["u4"]
    never = entries.led_to(quota.owner.pk, quota.uid, "pods", used="77", charged="3")
    assert not never.is_explained
    assert [entry.object_uid for entry in never.entries] == ["u4", "u1", "u3", "u2", "u1"]


def test_a_removed_beginning_is_made_up_for(quota: ResourceQuota) -> None:
    admit("u1", "u2", "u3")
    late = list(LedgerEntry.objects.order_by("id"))[1:]
    end = {quota.uid: parse(QuotaUsage.objects.get().used)}
    start = entries.start_of(late, end)
    assert to_json(start[quota.uid]) == ONE
    moments = entries.replay(late, start=start)[quota.uid]
    assert [to_json(at.used)["pods"] for at in moments] == ["2", "3"]
    assert [at.entry for at in moments] == [entry.pk for entry in late]


def append(created: datetime, namespace: str = "team", quota_uid: Any = None) -> None:
    cluster = factories.cluster()
    LedgerEntry.objects.create(
        cluster=cluster,
        quota_uid=quota_uid or uuid4(),
        namespace=namespace,
        action="charge",
        cause="admission",
        created=created,
    )


def test_old_entries_are_removed_but_for_held_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = datetime(2026, 6, 1, tzinfo=UTC)
    for day in range(1, 7):
        append(limit - timedelta(days=7 - day), namespace="held" if day == 2 else "team")
    append(limit)
    monkeypatch.setattr(entries, "_BATCH", 2)
    assert entries.forget(limit, held=Q(namespace="held")) == 5
    left = LedgerEntry.objects.values_list("created", flat=True)
    assert sorted(left) == [limit - timedelta(days=5), limit]
    assert entries.forget(limit, until=0) == 0
    assert entries.forget(limit) == 1


def test_entries_are_append_only_in_django() -> None:
    append(read_clock())
    for attempt in (
        LedgerEntry.objects.all().delete,
        lambda: LedgerEntry.objects.update(namespace="other"),
    ):
        with pytest.raises(AppendOnlyError):
            attempt()


@pytest.mark.parametrize(
    "statement",
    ["UPDATE {0} SET namespace = 'x'", "DELETE FROM {0}", "TRUNCATE {0}", "INSERT OR REPLACE"],
)
def test_entries_are_append_only_in_the_database(statement: str) -> None:
    other = {"postgresql": "OR REPLACE", "sqlite": "TRUNCATE"}[connection.vendor]
    if other in statement:
        pytest.skip("of the other database")
    append(read_clock())
    if statement == "INSERT OR REPLACE":
        statement = "INSERT OR REPLACE INTO {0} SELECT * FROM {0}"
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute(statement.format("policies_ledgerentry"))
    entries.forget(read_clock() + timedelta(days=1))
    assert LedgerEntry.objects.count() == 0
    append(read_clock())
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute("DELETE FROM policies_ledgerentry")


def test_the_journal_begins_with_what_is_held(quota: ResourceQuota) -> None:
    admit("u1", "u2")
    release("prod", resource="pods", uid="u2")
    entries.forget(read_clock() + timedelta(days=1))
    migration = import_module("policies.migrations.0010_ledger_entries")
    with connection.cursor() as cursor:
        cursor.execute(migration.HELD)
    assert lines() == [("charge", NONE, ONE, "upgrade")]
