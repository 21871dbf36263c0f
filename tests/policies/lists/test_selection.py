"""Labels selected from rows: as the engine matches them, on the database in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from engine.selector import Requirement, Selector, SelectorOperator, parse_selector
from policies.lists.selection import MOST_CONDITIONS, with_labels
from policies.models import Namespace
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Sequence

# Keys that a database could misread: as a place in a list, a lookup, a path, a number.
KEYS = ("app", "1", "1_0", "a__in", "a.b/c.d", "x.y", "0", "A")
VALUES = ("", "web", "WEB", "true", "null", "1", "10", "9", "1.0", "a.b")
LABELS: tuple[dict[str, str], ...] = (
    {},
    *({key: value} for key in KEYS for value in VALUES),
    {"app": "web", "1": "9", "a__in": "true"},
    {"a": "nested", "x": "y"},
)
SELECTORS = (
    "", "app", "!app", "app=", "app!=", "app=web", "app==web", "app!=web", "app in (web,WEB)",
    "app notin (web,)", "1=1", "1!=1", "!1", "1", "1_0=web", "a__in=true", "a__in!=true",
    "a.b/c.d=a.b", "!a.b/c.d", "x.y in (null,true)", "0 notin (9)", "1>9", "app<10", "1>1,app=web",
    "A=web", "app,1,a__in", "app=web,app!=web", "1=9,1!=10,app notin (WEB)",
)  # fmt: skip


def put(labels: Sequence[dict[str, str]]) -> None:
    cluster = factories.cluster()
    Namespace.objects.bulk_create(
        Namespace(cluster=cluster, name=f"n{number}", labels=each)
        for number, each in enumerate(labels)
    )


def selected(selector: Selector) -> list[dict[str, str]]:
    return [row.labels for row in with_labels(Namespace.objects.order_by("pk"), selector)]


@pytest.mark.django_db
@pytest.mark.parametrize("text", SELECTORS)
def test_the_database_selects_what_the_engine_matches(text: str) -> None:
    put(LABELS)
    selector = parse_selector(text)
    assert selected(selector) == [labels for labels in LABELS if selector.matches(labels)]


_requirements = st.one_of(
    st.builds(
        Requirement,
        st.sampled_from(KEYS),
        st.sampled_from(["=", "!=", "=="]).map(SelectorOperator),
        st.tuples(st.sampled_from(VALUES)),
    ),
    st.builds(
        Requirement,
        st.sampled_from(KEYS),
        st.sampled_from(["in", "notin"]).map(SelectorOperator),
        st.sets(st.sampled_from(VALUES), min_size=1).map(lambda values: tuple(sorted(values))),
    ),
    st.builds(
        Requirement, st.sampled_from(KEYS), st.sampled_from(["exists", "!"]).map(SelectorOperator)
    ),
    st.builds(
        Requirement,
        st.sampled_from(KEYS),
        st.sampled_from(["gt", "lt"]).map(SelectorOperator),
        st.tuples(st.sampled_from(("1", "9", "10"))),
    ),
)
_labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=4)


class LabelSelectorProperty(TestCase):
    """Each example in a transaction of its own."""

    @given(
        st.lists(_labels, min_size=1, max_size=8),
        st.lists(_requirements, max_size=4).map(Selector.of),
    )
    def test_any_selector_selects_what_the_engine_matches(
        self, labels: list[dict[str, str]], selector: Selector
    ) -> None:
        put(labels)
        assert selected(selector) == [each for each in labels if selector.matches(each)]


@pytest.mark.django_db
def test_many_requirements_make_no_statement_too_large() -> None:
    many = ",".join(f"a{number}!=x" for number in range(3000))
    put([{}, {"a7": "x"}, {f"a{MOST_CONDITIONS + 990}": "x"}, {"a8": "y"}])
    assert selected(parse_selector(many)) == [{}, {"a8": "y"}]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "asked"),
    [("app=web,!other,tier notin (a,b)", 0), ("1=1", 1), ("app>1", 1)],
)
def test_rows_are_read_only_where_the_database_cannot_tell(text: str, asked: int) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        with_labels(Namespace.objects.select_related("cluster"), parse_selector(text))
    assert len(queries) == asked
    assert all("annotations" not in query["sql"] for query in queries)
