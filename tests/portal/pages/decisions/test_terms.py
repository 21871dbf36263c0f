"""What the query's field offers: fields, and values that the reader sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from admission.record.search.words import FIELDS, TIMES
from tests import factories, people
from tests.portal.pages.decisions.test_explorer import made_by, of_class, put, refused

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
HERE = "/decisions/terms/"
QUESTIONS = 6
"""Of any word at most: session, user, days of the record, its edge, rows, names of places."""


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


def offered(reader: Client, word: str, rest: str = "") -> list[str]:
    answer = reader.get(HERE, {"word": word, "rest": rest})
    assert answer.status_code == 200
    return [term["text"] for term in answer.json()["terms"]]


def test_an_empty_word_may_become_any_field(reader: Client) -> None:
    assert offered(reader, "") == [*(f"{key}:" for key in FIELDS), "-"]
    assert offered(reader, "-") == [f"-{key}:" for key in FIELDS if key not in TIMES]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("na", ["name:"]),
        ("p", ["policy:", "priority:", "phase:"]),
        ("-us", ["-user:"]),
        ("den", ["verdict:denied"]),
        ("-allo", ["-verdict:allowed"]),
        ("verdict:wou", ["verdict:would-deny"]),
        ("op:c", ["op:create", "op:connect"]),
        ("operation:d", ["op:delete", "op:update"]),
        ("dry:", ["dry:yes", "dry:no"]),
        ("last:2", ["last:2d", "last:24h"]),
        ("since:", ["since:today", "since:yesterday"]),
        ("-since:", []),
        ("nmspc:", []),
    ],
)
def test_words_are_completed(reader: Client, word: str, found: list[str]) -> None:
    assert sorted(offered(reader, word)) == sorted(found)


def test_a_field_is_offered_once(reader: Client) -> None:
    assert offered(reader, "n", "ns:team") == ["name:"]
    assert offered(reader, "-n", "ns:team") == ["-ns:", "-name:"]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("cluster:", ["cluster:prod"]),
        ("ns:", ["ns:team"]),
        ("kind:", ["kind:Pod"]),
        ("name:we", ["name:web"]),
        ("user:", ['user:"Ada L"', "user:system:serviceaccount:team:x"]),
        ("user:X", ["user:system:serviceaccount:team:x"]),
        ("-user:ada", ['-user:"Ada L"']),
        ("reason:maxc", ["reason:MaxConstraint"]),
        ("policy:lr", ["policy:LimitRange/team/lr"]),
        ("priority:", ["priority:high"]),
        ("uid:", []),
    ],
)
def test_values_are_those_of_decisions(reader: Client, word: str, found: list[str]) -> None:
    refused(
        name="web-5d9f8c7b6d-x2x4z",
        user="Ada L",
        **of_class("high"),
        policy_names=" LimitRange/team/lr ",
    )
    put(user="system:serviceaccount:team:x", **made_by("u"))
    assert sorted(offered(reader, word)) == sorted(found)


def test_the_rest_of_the_query_narrows_the_values(reader: Client) -> None:
    refused(user="ada")
    put(user="bob")
    assert offered(reader, "user:", "verdict:denied") == ["user:ada"]
    assert set(offered(reader, "user:", "user:ada since:nonsense")) == {"user:ada", "user:bob"}


def test_nobody_is_offered_what_they_may_not_see(client: Client) -> None:
    for cluster, namespace in (("prod", "mine"), ("prod", "theirs"), ("test", "hidden")):
        factories.namespace(namespace, in_cluster=cluster)
        put(cluster=cluster, namespace=namespace, user=f"of-{namespace}")
    client.force_login(people.person(cluster="prod", namespace="mine"))
    assert offered(client, "cluster:") == ["cluster:prod"]
    assert offered(client, "ns:") == ["ns:mine"]
    assert offered(client, "user:") == ["user:of-mine"]
    client.force_login(people.nobody("stranger"))
    assert [offered(client, word) for word in ("cluster:", "ns:", "user:")] == [[], [], []]
    client.logout()
    assert client.get(HERE).status_code == 302


@pytest.mark.parametrize("word", ["cluster:", "ns:", "user:", "policy:", "reason:"])
def test_no_number_of_decisions_asks_more(reader: Client, word: str) -> None:
    offered(reader, word)  # what is remembered for a minute is remembered
    asked: set[int] = set()
    for number in (3, 30):
        for each in range(number):
            policies = f" LimitRange/team/lr-{number}-{each} "
            refused(user=f"u-{number}-{each}", namespace=f"ns-{each}", policy_names=policies)
        with CaptureQueriesContext(connection) as queries:
            assert offered(reader, word)
        asked.add(len(queries))
    assert len(asked) == 1
    assert asked.pop() <= QUESTIONS


@pytest.mark.parametrize("word", ["user:\0", 'ns:"', "-", ":", "::", "ns:\\", "x" * 5000])
def test_any_word_is_answered(reader: Client, word: str) -> None:
    put()
    assert reader.get(HERE, {"word": word, "rest": f'"{word}'}).status_code == 200
    assert reader.get(f"{HERE}?word=user:%ED%A0%80&rest=ns:%ED%A0%80").status_code == 200


def test_terms_say_whether_more_must_follow(reader: Client) -> None:
    terms: list[dict[str, Any]] = reader.get(HERE, {"word": "ve"}).json()["terms"]
    assert [(term["text"], term["is_open"]) for term in terms] == [("verdict:", True)]
    terms = reader.get(HERE, {"word": "verdict:denied"}).json()["terms"]
    assert [(term["text"], term["is_open"]) for term in terms] == [("verdict:denied", False)]
