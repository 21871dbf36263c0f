"""Differences of two texts: numbers of both, what was added, which values are marked."""

from __future__ import annotations

from portal.pages.policies.panes.differences import differences_of
from portal.pages.policies.panes.yaml_lines import Piece, pieces_of


def test_changed_value_is_marked_in_both_lines() -> None:
    found = differences_of("kind: A\nmax: 4Gi\nmin: 1\n", "kind: A\nmax: 2Gi\nmin: 1\n")
    assert [(line.sign, line.old, line.new) for line in found.lines] == [
        ("", 1, 1), ("-", 2, None), ("+", None, 2), ("", 3, 3),
    ]  # fmt: skip
    marked = [piece.text for line in found.lines for piece in line.pieces if piece.is_marked]
    assert marked == ["4Gi", "2Gi"]
    assert (found.added, found.removed) == (1, 1)


def test_equal_texts_have_no_differences() -> None:
    assert differences_of("a: 1\n", "a: 1").lines == ()


def test_lines_of_another_number_are_removed_and_added_unmarked() -> None:
    found = differences_of("a: 1\nb: 2\n", "a: 1\nc: 2\nd: 3\n")
    assert [line.sign for line in found.lines] == ["", "-", "+", "+"]
    assert not any(piece.is_marked for line in found.lines for piece in line.pieces)


def test_lines_stand_beside_those_whose_place_they_took() -> None:
    found = differences_of("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 4\nd: 5\nc: 3\n")
    assert [(old and old.old, new and new.new) for old, new in found.sides] == [
        (1, 1), (2, 2), (None, 3), (3, 4),
    ]  # fmt: skip


def test_long_texts_show_what_is_near_a_change() -> None:
    lines = [f"k{number}: v" for number in range(500)]
    found = differences_of("\n".join(lines), "\n".join([*lines[:250], "new: v", *lines[250:]]))
    assert len(found.lines) == 7


def test_line_is_read_as_key_and_value() -> None:
    assert pieces_of("  - cpu: 4") == (
        Piece("  - "), Piece("cpu", "key"), Piece(": "), Piece("4", "number"),
    )  # fmt: skip
    assert pieces_of("- plain text") == (Piece("- "), Piece("plain text", "value"))
    assert pieces_of("") == ()
