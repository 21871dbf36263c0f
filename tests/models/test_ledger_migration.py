"""The ledger's tables take over what was stored before, and give it back."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from policies import ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.no_cover]
BEFORE = ("policies", "0003_counted_revisions")
AFTER = ("policies", "0004_quota_usage")
QUOTA, GONE = uuid.uuid4(), uuid.uuid4()


def migrate(*targets: tuple[str, str]) -> Any:
    """Go there; returns the models as they were then."""
    executor = MigrationExecutor(connection)
    return executor.migrate(list(targets)).apps


@pytest.fixture
def _newest_again() -> Iterator[None]:
    yield
    migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())


def store(apps: Any) -> None:
    def model(name: str) -> Any:
        return apps.get_model("policies", name).objects

    cluster = model("Cluster").create(name="prod")
    namespace = model("Namespace").create(cluster=cluster, name="team")
    quota = model("ResourceQuota").create(namespace=namespace, name="rq", uid=QUOTA)
    rows = {"pods": "2", "limits.nvidia.com/gpu": None, "requests.cpu": "500m"}
    for resource, used in rows.items():
        model("ResourceQuotaRow").create(quota=quota, resource=resource, hard="9", used=used)
    common = {"cluster": cluster, "namespace": "team", "resource": "pods", "state": "confirmed"}
    amounts = {"pods": "1", "requests.cpu": "250m"}
    for uid in ("u1", "u2"):
        fields = {**common, "object_uid": uid, "amounts": amounts}
        model("Charge").create(**fields, quota=quota, quota_uid=QUOTA)
    model("Charge").create(**common, object_uid="u3", quota=None, quota_uid=GONE)


@pytest.mark.usefixtures("_newest_again")
def test_what_was_used_moves_and_comes_back() -> None:
    store(migrate(BEFORE))
    now = migrate(AFTER)
    [stored] = now.get_model("policies", "QuotaUsage").objects.all()
    assert stored.used == {"pods": "2", "requests.cpu": "500m"}
    assert (stored.quota_uid, stored.namespace) == (QUOTA, "team")
    charges = now.get_model("policies", "Charge").objects.all()
    assert {charge.reserved_at == charge.updated for charge in charges} == {True}
    old = migrate(BEFORE)
    rows = old.get_model("policies", "ResourceQuotaRow").objects.all()
    assert sorted(str(row.used) for row in rows) == ["2", "500m", "None"]
    known = old.get_model("policies", "Charge").objects.filter(quota__name="rq")
    assert known.count() == 2


@pytest.mark.usefixtures("_newest_again")
def test_nothing_differs_after_the_move() -> None:
    store(migrate(BEFORE))
    migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())
    assert ledger.recount("prod") == []
    assert ledger.release("prod", resource="pods", uid="u1") == 1


def test_keys_have_the_cluster_and_one_index_of_charges_begins_with_it() -> None:
    """While charges are few, and plans are made, a second such index may be taken instead."""
    for table in ("policies_charge", "policies_quotausage"):
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, table)
        keyed = [
            entry["columns"]
            for entry in found.values()
            if entry["index"] or entry["unique"] or entry["primary_key"]
        ]
        if connection.vendor != "postgresql":
            keyed = [columns for columns in keyed if columns not in (["id"], ["quota_id"])]
        assert all("cluster_id" in columns for columns in keyed), table
        leading = [columns for columns in keyed if columns[0] == "cluster_id"]
        assert len(leading) == (1 if table == "policies_charge" else 0), leading
