"""What one decision asks of the database: few statements, and only rows of its own cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.builders import container
from tests.reviews import SEED_LIMITS, new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db
HOT = {
    "admission_auditevent",
    "policies_charge",
    "policies_ledgerentry",
    "policies_quotausage",
}
BY_CLUSTER = {
    "admission_auditevent": r'\(.*"cluster".*\)',  # the row names it
    "policies_charge": r"cluster_id (= |IN|, )|cluster_id,",
    "policies_ledgerentry": r"\(cluster_id,",
    "policies_quotausage": r"cluster_id (= |IN|, )|cluster_id,",
    "policies_cluster": r'policies_cluster("\."id" IN| WHERE id = ANY)',
}


def tables_of(statement: str) -> set[str]:
    return set(re.findall(r"\b(?:policies|admission|auth|django|knox)_[a-z_]+\b", statement))


@pytest.fixture
def statements(ask: Callable[..., Any], apply: Callable[..., None]) -> Callable[..., list[str]]:
    """What is executed for one review, transaction control left out; all else is warmed up."""
    apply(SEED_LIMITS, quota(hard={"pods": "5", "requests.cpu": "10"}))
    sized = {"cpu": "500m", "memory": "500Mi"}
    pods = [new_pod("p", container(requests=sized, limits=sized)) for _ in range(3)]
    ask(review(pods.pop()))

    def executed(phase: str) -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            assert ask(review(pods.pop()), phase=phase).json()["response"]["allowed"]
        found = [query["sql"] for query in captured.captured_queries]
        return [text for text in found if not re.match(r"(RELEASE )?SAVEPOINT|PRAGMA", text)]

    return executed


def test_a_charged_decision_is_seven_statements(statements: Callable[..., list[str]]) -> None:
    found = statements("validate")
    assert len(found) == 7, found  # three read; usage, charge, entry and record are written
    assert {table for text in found for table in tables_of(text)} == HOT | {"policies_cluster"}


def test_a_mutating_decision_is_two_statements(statements: Callable[..., list[str]]) -> None:
    found = statements("mutate")
    assert len(found) == 2, found
    tables = {table for text in found for table in tables_of(text)}
    assert tables == {"policies_cluster", "admission_auditevent"}


def test_every_statement_names_its_cluster(statements: Callable[..., list[str]]) -> None:
    for text in statements("validate") + statements("mutate"):
        for table in tables_of(text):
            assert re.search(BY_CLUSTER[table], text, re.DOTALL), text


UNIQUE = """
    SELECT i.indrelid::regclass::text, array_agg(a.attname::text)
    FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
    WHERE i.indisunique AND i.indrelid::regclass::text = ANY(%s)
    GROUP BY i.indexrelid, i.indrelid"""


def test_every_unique_key_holds_within_a_cluster() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("tables are distributed by cluster on PostgreSQL alone")
    with connection.cursor() as cursor:
        cursor.execute(UNIQUE, [list(HOT)])
        found = cursor.fetchall()
    assert {table for table, _ in found} == HOT
    for table, columns in found:
        assert {"cluster", "cluster_id"} & set(columns), (table, columns)
