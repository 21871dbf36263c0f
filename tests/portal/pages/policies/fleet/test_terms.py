"""Words of the search: names, places, labels, amounts and rules, alone and together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from portal.pages.policies.fleet.terms import MOST_WORDS
from tests import factories, people

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
GPU = "requests.nvidia.com/gpu"


@pytest.fixture
def reader(client: Client) -> Client:
    factories.limit_range(
        {"type": "Container", "max": {"cpu": "4"}, "maxLimitRequestRatio": {"cpu": "10"}},
        name="ranges",
        labels={"team": "payments", "example.com/tier": "1"},
    )
    factories.metadata_policy(
        {
            "policyPredicate": {"labelSelector": {"matchLabels": {"app": "web"}}},
            "PolicyAction": {"updatedLabels": {"cost-center": "4711"}},
        },
        name="rules",
        labels={"team": "search"},
    )
    quotas = {"computing": {"requests.cpu": "4500m", "memory": "2Gi"}, "gpus": {GPU: "3"}}
    for name, hard in quotas.items():
        spec = {"hard": hard}
        factories.apply(factories.manifest("ResourceQuota", spec, name=name, labels={"7": "x"}))
    factories.priority_class(metadata={"name": "high", "labels": {"team": "search"}})
    client.force_login(people.person())
    return client


def found(reader: Client, words: str, **more: str) -> list[str]:
    query = {"words": words, "order": "name", **more}
    context: Any = reader.get("/policies/", query).context
    names = [line["name"] for line in context["lines"]]
    assert context["total"] == len(names)
    return names


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("team=payments", ["ranges"]),
        ("example.com/tier=1", ["ranges"]),
        ("7=x", ["computing", "gpus"]),
        ("payments", ["ranges"]),
        ("TIER", ["ranges"]),
        ("team=pay", []),
        ("gpu", ["gpus"]),
        ("nvidia.com/gpu=3", ["gpus"]),
        ("cpu>4", ["computing"]),
        ("cpu>=4", ["computing", "ranges"]),
        ("cpu=4.5", ["computing"]),
        ("cpu<=4000m", ["ranges"]),
        ("cpu<4", []),
        ("memory=2048Mi", ["computing"]),
        ("2097152Ki", ["computing"]),
        ("10", []),  # a ratio is no amount
        ("cost-center=4711", ["rules"]),
        ("app=web", ["rules"]),
        ("4711", ["rules"]),
        ("cost-center>1", []),
        ("cpu>much", []),
        ("cpu>4 memory<1Gi", []),
        ("cpu>4 memory>1Gi", ["computing"]),
        ("team cpu>4", ["computing"]),
        ('"', []),
        ('"team"', []),
        ("{", []),
        ("a=b=c", []),
        ("=", []),
        ("%", []),
    ],
)
def test_words_find(reader: Client, words: str, names: list[str]) -> None:
    assert found(reader, words) == names


def test_priority_classes_are_found_by_their_labels(reader: Client) -> None:
    for words, names in {"team=search": ["high"], "SEAR": ["high"], "team=payments": []}.items():
        assert found(reader, words, kind="PriorityClass") == names


def test_no_more_words_are_shown_than_are_looked_for(reader: Client) -> None:
    context: Any = reader.get("/policies/", {"words": "ran " * (MOST_WORDS + 5)}).context
    assert context["asked"].words.split() == ["ran"] * MOST_WORDS
    assert context["total"] == 1
