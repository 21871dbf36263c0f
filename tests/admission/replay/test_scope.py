"""The decisions of a replay: of a cluster, namespaces, a time and a query, whole and in order."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from admission.replay import scope as scope_module
from admission.replay.scope import QueryError, ReplayScope, check_query
from tests.admission.replay.conftest import BEGIN

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


def scope(**fields: Any) -> ReplayScope:
    whole = {"since": BEGIN - dt.timedelta(days=2), "until": BEGIN + dt.timedelta(days=2)}
    return ReplayScope(**{"cluster": "demo", **whole, **fields})


def ids(of: ReplayScope) -> list[str]:
    return [each.id for piece in of.pieces() for each in piece]


def test_all_decisions_come_once_oldest_first(
    decided: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_module, "PIECE", 4)
    # Over midnight, and as many as whole pieces have.
    recorded = decided(*["1"] * 20)
    assert ids(scope()) == recorded
    assert [len(piece) for piece in scope().pieces()] == [4, 4, 2, 4, 4, 2]
    assert scope().count() == 20


def test_only_those_of_the_time(decided: Callable[..., list[str]]) -> None:
    recorded = decided("1", "1", "1")
    since, until = (BEGIN + dt.timedelta(seconds=second) for second in (1, 2))
    assert ids(scope(since=since, until=until)) == recorded[1:2]


def test_only_those_of_the_namespaces(decided: Callable[..., list[str]]) -> None:
    decided("1", namespace="other")
    recorded = decided("1")
    assert ids(scope(namespaces=("ns",))) == recorded


def test_only_those_of_the_cluster(decided: Callable[..., list[str]]) -> None:
    decided("1")
    assert ids(scope(cluster="none")) == []


def test_only_those_that_a_query_finds(decided: Callable[..., list[str]]) -> None:
    recorded = decided("1", "5")
    assert ids(scope(query="verdict:denied")) == recorded[1:]
    assert scope(query="verdict:denied").count() == 1


def test_only_those_that_are_named(decided: Callable[..., list[str]]) -> None:
    recorded = decided("1", "1", "1")
    assert ids(scope(ids=(recorded[2], recorded[0]))) == [recorded[0], recorded[2]]


@pytest.mark.parametrize("query", ["nothing:here", "verdict:odd", "since:whenever"])
def test_a_query_that_cannot_be_understood_is_refused(query: str) -> None:
    with pytest.raises(QueryError) as refused:
        check_query(query)
    assert refused.value.faults


def test_what_a_replay_reads_is_the_text_of_the_request(decided: Callable[..., list[str]]) -> None:
    decided("1")
    ((only,),) = scope().pieces()
    assert only.request.startswith("{")
    assert (only.namespace, only.phase, only.verdict) == ("ns", "validate", "allowed")
    assert only.policy_revision == 1
