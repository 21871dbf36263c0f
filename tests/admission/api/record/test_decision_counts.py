"""Counts beside the list of decisions, as the explorer shows them, of what one may see."""

from __future__ import annotations

from typing import Any

import pytest

from tests import people
from tests.admission.api.record.test_retention import decided
from tests.api_tokens import call, secret_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def _record(db: None) -> None:
    for number in range(4):
        decided(0, number)
    denied = {"verdict": "denied", "code": 403, "reasons": "QuotaExceeded"}
    decided(0, 4, namespace="shop", user="eve", **denied)
    decided(0, 5, cluster="test", user="eve", **denied)


def counted(secret: str, query: str = "") -> Any:
    answer = call(secret, "get", f"decisions/counts/{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def values(found: Any, facet: str) -> dict[str, int]:
    return {
        value["label"]: value["number"]
        for each in found["facets"]
        if each["name"] == facet
        for value in each["values"]
    }


@pytest.mark.usefixtures("_record")
def test_number_facets_and_spans_agree() -> None:
    found = counted(secret_of(people.person(), "read"))
    assert (found["number"], found["number_is_exact"], found["spans_are_complete"]) == (
        6,
        True,
        True,
    )
    assert values(found, "namespace") == {"team": 5, "shop": 1}
    assert values(found, "verdict") == {"allowed": 4, "denied": 2}
    sums = {n: sum(span[n] for span in found["spans"]) for n in ("allowed", "denied")}
    assert sums == {"allowed": 4, "denied": 2}


@pytest.mark.usefixtures("_record")
def test_filters_narrow_them_and_a_value_names_its_query() -> None:
    found = counted(secret_of(people.person()), "?verdict=denied")
    assert found["number"] == 2
    assert values(found, "cluster") == {"prod": 1, "test": 1}
    (verdicts,) = [each for each in found["facets"] if each["name"] == "verdict"]
    assert verdicts["values"][0] == {"label": "denied", "number": 2, "query": "", "chosen": True}


@pytest.mark.usefixtures("_record")
@pytest.mark.parametrize(
    ("scope", "number"),
    [({"cluster": "prod"}, 5), ({"cluster": "prod", "namespace": "te*"}, 4), ({"cluster": "x"}, 0)],
)
def test_only_visible_decisions_count(scope: dict[str, str], number: int) -> None:
    assert counted(secret_of(people.person("a"), **scope))["number"] == number
    assert counted(secret_of(people.person("b", **scope)))["number"] == number


@pytest.mark.usefixtures("_record")
@pytest.mark.parametrize(
    "query", ["?verdct=denied", "?verdict=no", "?since=yesterday", "?user=", "?user=a&user=b"]
)
def test_what_cannot_be_used_is_refused(query: str) -> None:
    secret = secret_of(people.person())
    assert call(secret, "get", f"decisions/counts/{query}").status_code == 400
