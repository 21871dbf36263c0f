"""Names: every text to the byte, lengths in bytes, resource names in their classes."""

from __future__ import annotations

import pytest

from engine import names
from engine.errors import FieldPath

QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SLASH = "DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',"
    "  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("cpu", []),
        ("a.b/C_d", []),
        ("", ["name part must be non-empty", f"name part {QUALIFIED}"]),
        ("-a", [f"name part {QUALIFIED}"]),
        ("a\n", [f"name part {QUALIFIED}"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("\u00e9" * 32, ["name part must be no more than 63 bytes", f"name part {QUALIFIED}"]),
        ("/a", ["prefix part must be non-empty"]),
        ("A/a", [f"prefix part {SUBDOMAIN}"]),
        ("a" * 254 + "/a", ["prefix part must be no more than 253 characters"]),
        (
            "a/b/c",
            [f"a valid label key {QUALIFIED} with an optional {SLASH}"],
        ),
    ],
)
def test_qualified_name(text: str, errors: list[str]) -> None:
    assert names.qualified_name_errors(text) == errors


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("", []),
        ("a" * 63, []),
        ("a" * 64, ["must be no more than 63 bytes"]),
        ("a b", [VALUE]),
        ("\ud800", [VALUE]),
    ],
    ids=["empty", "longest", "too long", "space", "lone surrogate"],
)
def test_label_value(text: str, errors: list[str]) -> None:
    assert names.label_value_errors(text) == errors


@pytest.mark.parametrize(
    ("text", "count"), [("a-1", 0), ("a.b", 1), ("A", 1), ("", 1), ("a" * 64, 1), ("A" * 64, 2)]
)
def test_dns_label(text: str, count: int) -> None:
    assert len(names.dns1123_label_errors(text)) == count


@pytest.mark.parametrize(
    ("text", "count"), [("a.b-1", 0), ("a..b", 1), ("a-.b", 1), ("a" * 254, 1), ("", 1)]
)
def test_dns_subdomain(text: str, count: int) -> None:
    assert len(names.dns1123_subdomain_errors(text)) == count


def test_label_errors_point_at_the_map() -> None:
    errors = names.labels_errors(
        {"ok": "fine", "bad key": "bad value"}, FieldPath("metadata.labels")
    )
    assert [(e.field, e.bad_value) for e in errors] == [
        ("metadata.labels", "bad key"),
        ("metadata.labels", "bad value"),
    ]


def test_annotation_keys_may_have_capitals_in_their_prefix() -> None:
    path = FieldPath("metadata.annotations")
    errors = names.annotations_errors({"Example.COM/Key": "any \n thing", "-": ""}, path)
    assert [(e.field, e.bad_value) for e in errors] == [("metadata.annotations", "-")]


def test_annotations_are_bounded_in_bytes() -> None:
    path = FieldPath("metadata.annotations")
    assert names.annotations_errors({"k": "\u00e9" * 131071 + "x"}, path) == []
    (error,) = names.annotations_errors({"k": "\u00e9" * 131072}, path)
    text = "metadata.annotations: Too long: may not be more than 262144 bytes"
    assert str(error) == text


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("cpu", (True, False, True)),
        ("hugepages-2Mi", (True, False, False)),
        ("nvidia.com/gpu", (False, True, False)),
        ("requests.nvidia.com/gpu", (False, False, False)),
        ("x.kubernetes.io/y", (True, False, True)),
        ("a b/c", (False, False, False)),
        ("count/pods.x", (False, True, False)),
    ],
)
def test_resource_classes(name: str, answers: tuple[bool, ...]) -> None:
    found = (
        names.is_native(name),
        names.is_extended_resource(name),
        names.is_over_commit_allowed(name),
    )
    assert found == answers


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("cpu", (True, True, True, False)),
        ("storage", (True, False, False, False)),
        ("requests.storage", (True, True, False, False)),
        ("limits.storage", (False, False, False, False)),
        ("hugepages-1Gi", (True, True, True, False)),
        ("requests.hugepages-1Gi", (True, True, False, False)),
        ("pods", (True, True, False, True)),
        ("services.nodeports", (True, True, False, True)),
        ("gpu", (False, False, False, False)),
        ("count/x.y", (False, False, False, True)),
        ("requests.nvidia.com/gpu", (False, False, False, False)),
    ],
)
def test_resource_standards(name: str, answers: tuple[bool, ...]) -> None:
    found = (
        names.is_standard_resource(name),
        names.is_standard_quota_resource(name),
        names.is_standard_container_resource(name),
        names.is_integer_resource(name),
    )
    assert found == answers
