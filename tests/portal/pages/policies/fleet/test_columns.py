"""Columns and groups in the address: chosen by links, kept by all others."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from portal.pages.policies.fleet.columns import (
    column_choices,
    group_choices,
    heads_of,
    shown_columns,
)
from portal.pages.policies.selection import asked_by


def asked(query: str = "") -> Any:
    return asked_by(QueryDict(query))


def query_of(choices: Any, label: str) -> str:
    (query,) = [choice.query for choice in choices if choice.label == label]
    return str(query)


def test_a_column_is_hidden_and_shown_again() -> None:
    hidden = query_of(column_choices(asked("mode=audit")), "Version")
    assert "version" not in shown_columns(asked(hidden))
    assert asked(hidden).mode == "audit"
    assert query_of(column_choices(asked(hidden)), "Version") == "mode=audit"


def test_labels_are_shown_where_asked_for() -> None:
    assert "labels" not in shown_columns(asked())
    query = query_of(column_choices(asked()), "Labels")
    assert [head.name for head in heads_of(asked(query))][3] == "labels"


def test_names_are_always_shown_and_unknown_columns_never() -> None:
    assert shown_columns(asked("columns=mode+nothing")) == {"name", "mode"}
    assert shown_columns(asked("columns=name")) == {"name"}
    assert shown_columns(asked("columns=nothing")) == shown_columns(asked())


def test_a_group_is_chosen_and_left() -> None:
    grouped = query_of(group_choices(asked("order=name")), "namespace")
    assert (asked(grouped).group, asked(grouped).order) == ("namespace", "name")
    assert query_of(group_choices(asked(grouped)), "none") == "order=name"
    assert asked("group=nothing").group == ""


def test_heads_sort_and_turn_round() -> None:
    def order(query: str, name: str) -> str:
        (head,) = [head for head in heads_of(asked(query)) if head.name == name]
        return str(asked(head.query).order)

    assert order("", "name") == "name"
    assert order("order=name", "name") == "-name"
    assert order("", "changed") == "-changed"
    assert order("order=name", "denials") == ""
    assert [head.name for head in heads_of(asked("mode=audit")) if not head.query] == ["sync"]
