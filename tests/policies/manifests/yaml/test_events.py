"""Reading YAML and JSON: values as kubectl sees them, and every trap with its place."""

from __future__ import annotations

import pytest

from engine.wire import RawNumber
from policies.manifests.documents import ManifestError
from policies.manifests.sources import parse_documents


def only_value(text: str) -> object:
    (document,) = parse_documents(text, "f.yaml")
    return document.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", False),
        ("y", True),
        ("0o17", RawNumber("15")),
        ("017", RawNumber("15")),
        ("1e3", RawNumber("1000")),
        ("0x1F", RawNumber("31")),
        ("0b11", RawNumber("3")),
        ("1_000", RawNumber("1000")),
        (".5", RawNumber("0.5")),
        ("500m", "500m"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("+5", RawNumber("5")),
        ("~", None),
        ('"1e3"', "1e3"),
        ("'no'", "no"),
        ("2026-11-21", "2026-11-21"),
    ],
    ids=str,
)
def test_plain_scalar_is_read_as_kubectl_reads_it(text: str, value: object) -> None:
    read = only_value(f"a: {text}")
    assert read == {"a": value}
    assert isinstance(read, dict)
    assert type(read["a"]) is type(value)


def problems_of(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(ManifestError) as caught:
        parse_documents(text, "f.yaml")
    return [(p.line, p.column, p.message) for p in caught.value.problems]


def test_duplicate_key_is_refused_with_both_places() -> None:
    assert problems_of("a: 1\nb:\n  c: 1\n  c: 2\n") == [
        (4, 3, 'duplicate key "c", first on line 3')
    ]


def test_duplicate_key_of_json_is_refused_too() -> None:
    assert problems_of('{"a": 1, "a": 2}') == [(1, 10, 'duplicate key "a", first on line 1')]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a: &x 1\n", 1, "anchor (&x)"),
        ("a: 1\nb: !!python/none x\n", 2, "not allowed"),
        ("a: !custom x\n", 1, "tag (!custom)"),
        ("a: {<<: {b: 1}}\n", 1, "merge key"),
        ("[a, b]: 1\n", 1, "key that is no text"),
        ("a: 1\n\tb: 2\n", 2, ""),
    ],
    ids=["anchor", "python-tag", "tag", "merge", "list-as-key", "tab"],
)
def test_trap_is_refused_with_its_line(text: str, line: int, word: str) -> None:
    found = problems_of(text)
    assert (found[0][0], word in found[0][2]) == (line, True)


def test_alias_is_refused_and_nothing_blows_up() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"b{i}: [*a, *a]\n" for i in range(50))
    assert len(problems_of(bomb)) == 101


def test_deep_nesting_is_refused() -> None:
    assert "deeper than 200" in problems_of("[" * 5000)[0][2]


def test_places_of_fields_and_of_missing_ones() -> None:
    text = "spec:\n  limits:\n  - max:\n      cpu: 1\n"
    (document,) = parse_documents(text, "f.yaml")
    assert document.place_of("spec.limits[0].max[cpu]") == (4, 7)
    assert document.place_of("spec.limits[0].min[cpu]") == (3, 5)
    assert document.place_of("metadata.name") == (1, 1)


def test_documents_are_separated_and_empty_ones_left_out() -> None:
    documents = parse_documents("---\na: 1\n---\n---\nb: 2\n...\n", "f.yaml")
    assert [d.value for d in documents] == [{"a": RawNumber("1")}, {"b": RawNumber("2")}]


def test_file_beyond_the_size_cap_is_refused() -> None:
    assert "larger than 8 MiB" in problems_of("#" * (8 * 1024 * 1024 + 1))[0][2]


@pytest.mark.parametrize(
    "text", ["a: \x01\n", "a: [1\n", "a: 'x\n"], ids=["control", "open list", "open quote"]
)
def test_text_that_is_no_yaml_is_refused(text: str) -> None:
    assert problems_of(text)
