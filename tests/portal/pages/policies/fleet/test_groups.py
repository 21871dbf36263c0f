"""Rows in groups: those with denials first in each, a page at a time."""

from __future__ import annotations

from typing import Any

from portal.pages.policies.fleet.groups import PagedRows, placed


def row(name: str, group: str = "") -> dict[str, Any]:
    return {"name": name, "group": group}


def read(rows: Any) -> str:
    return "".join(each["name"] for each in rows)


def test_known_rows_come_first() -> None:
    places = placed([row("z")], 4, sizes=None)
    rows = PagedRows(places, [row(name) for name in "abc"])
    assert (len(rows), read(rows[0:2]), read(rows[2:4]), rows[3]["name"]) == (4, "za", "bc", "c")


def test_known_rows_come_first_in_their_groups() -> None:
    known = [row("z", "two"), row("y", "one"), row("x", "two")]
    places = placed(known, 6, column="group", sizes={"one": 2, "two": 3, "three": 1})
    rows = PagedRows(places, [row("a", "one"), row("b", "two"), row("c", "three")])
    assert read(rows[0:6]) == "yazxbc"
    assert [read(rows[at : at + 2]) for at in (0, 2, 4)] == ["ya", "zx", "bc"]


def test_a_row_that_is_gone_leaves_its_place_empty() -> None:
    rows = PagedRows(placed([], 3, sizes=None), [row("a")])
    assert read(rows[0:3]) == "a"
