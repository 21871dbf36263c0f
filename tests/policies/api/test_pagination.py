"""Pages of lists: limits and offsets that cannot be used are refused with their name."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests import api_document, factories, people

pytestmark = pytest.mark.django_db
LISTS = [
    path
    for path, operations in api_document.document()["paths"].items()
    if "{" not in path
    and any(each["name"] == "limit" for each in operations.get("get", {}).get("parameters", ()))
]


@pytest.fixture
def reader() -> APIClient:
    client = APIClient()
    client.force_authenticate(people.person("chief", "admin"))
    return client


def bounds(path: str, name: str) -> dict[str, Any]:
    parameters = api_document.operation_of("get", path)["parameters"]
    found: dict[str, Any] = next(each["schema"] for each in parameters if each["name"] == name)
    return found


def required(path: str) -> dict[str, str]:
    """The parameters without which a list answers nothing: instants, all of them."""
    parameters = api_document.operation_of("get", path)["parameters"]
    now = timezone.now().isoformat()
    return {each["name"]: now for each in parameters if each.get("required")}


@pytest.mark.sampled
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", ["-1", "0", "501", "9" * 30, "ten", "1.5", " 1", "٣", ""])
def test_a_limit_that_cannot_be_used_is_refused(reader: APIClient, path: str, limit: str) -> None:
    answer = reader.get(path, {"limit": limit})
    assert answer.status_code == 400
    assert [*answer.json()["errors"]] == ["limit"]


@pytest.mark.sampled
@pytest.mark.parametrize("path", LISTS)
def test_a_repeated_limit_is_refused(reader: APIClient, path: str) -> None:
    answer = reader.get(f"{path}?limit=1&limit=2")
    assert answer.json()["errors"]["limit"][0]["code"] == "repeated_parameter"


@pytest.mark.sampled
@pytest.mark.parametrize("path", LISTS)
def test_the_described_bounds_are_accepted(reader: APIClient, path: str) -> None:
    factories.cluster()  # before any record there is no past to compare
    described = bounds(path, "limit")
    for limit in (described["minimum"], described["maximum"], described["default"]):
        assert reader.get(path, {"limit": limit, **required(path)}).status_code == 200
    assert described["maximum"] == 500


@pytest.mark.parametrize("offset", ["-1", "2147483648", "two", ""])
def test_an_offset_that_cannot_be_used_is_refused(reader: APIClient, offset: str) -> None:
    answer = reader.get("/api/v1/clusters/", {"offset": offset})
    assert (answer.status_code, [*answer.json()["errors"]]) == (400, ["offset"])


def test_an_offset_beyond_the_end_is_an_empty_page(reader: APIClient) -> None:
    factories.cluster()
    assert reader.get("/api/v1/clusters/", {"offset": 2**31 - 1}).json()["results"] == []
    assert len(reader.get("/api/v1/clusters/", {"offset": 0}).json()["results"]) == 1


@pytest.mark.parametrize("cursor", ["", "0", "<", "<0123", ">" + "w" * 16, "<" + "u" * 16])
def test_a_cursor_that_cannot_be_used_is_refused(reader: APIClient, cursor: str) -> None:
    answer = reader.get("/api/v1/decisions/", {"cursor": cursor})
    assert (answer.status_code, [*answer.json()["errors"]]) == (400, ["cursor"])


OWN = [
    "ordering",
    "labelSelector",
    "fields",
    "name",
    "cluster__in",
    "created__gte",
    "revision__gte",
]


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize(
    ("value", "code"),
    [("", "empty_value"), (" ", "empty_value"), ("a\0", "null_characters_not_allowed")],
)
def test_a_parameter_without_a_value_is_refused(
    reader: APIClient, name: str, value: str, code: str
) -> None:
    answer = reader.get("/api/v1/limitranges/", {name: value})
    assert answer.status_code == 400
    assert [error["code"] for error in answer.json()["errors"][name]] == [code]


@pytest.mark.parametrize("entries", [",", "a,,b", "a, ", ",a"])
def test_empty_entries_are_refused(reader: APIClient, entries: str) -> None:
    answer = reader.get("/api/v1/limitranges/", {"cluster__in": entries})
    assert [*answer.json()["errors"]] == ["cluster__in"]


@pytest.mark.parametrize("number", ["5.0", "-1", "+1", "٣", str(2**63), "1e3"])
def test_a_number_is_written_in_digits(reader: APIClient, number: str) -> None:
    answer = reader.get("/api/v1/limitranges/", {"revision__gte": number})
    assert (answer.status_code, [*answer.json()["errors"]]) == (400, ["revision__gte"])


@pytest.mark.parametrize("path", ["limitranges/?created__gte=", "decisions/?since="])
def test_times_take_every_offset(reader: APIClient, path: str) -> None:
    # PostgreSQL refuses offsets of sixteen hours and more.
    factories.limit_range()
    for offset in ("-23%3A59", "%2B23%3A59", "Z"):
        answer = reader.get(f"/api/v1/{path}2020-01-01T00:00:00{offset}")
        assert answer.status_code == 200


def test_an_export_takes_several_kinds_and_namespaces(reader: APIClient) -> None:
    factories.limit_range()
    factories.namespace("other")
    path = "/api/v1/clusters/prod/export/"
    answer = reader.get(f"{path}?kind=LimitRange&kind=Namespace&namespace=team&namespace=other")
    assert answer.status_code == 200
    assert answer.content.count(b"kind: Namespace") == 2
    assert reader.get(f"{path}?kind=").status_code == 400


def test_an_unknown_method_is_refused_before_its_parameters(reader: APIClient) -> None:
    for method in ("TRACE", "OPTIONS"):
        answer = reader.generic(method, "/api/v1/clusters/?nonsense=1")
        assert (answer.status_code, "GET" in answer["Allow"]) == (405, True)


def of_whole_numbers() -> list[tuple[str, str, int]]:
    """Every parameter of a list that is a bounded number: path, name, maximum."""
    return [
        (path, each["name"], each["schema"]["maximum"])
        for path, operations in api_document.document()["paths"].items()
        for each in operations.get("get", {}).get("parameters", ())
        if each["in"] == "query" and "maximum" in each["schema"] and "{" not in path
    ]


def test_every_whole_number_keeps_its_described_bounds(reader: APIClient) -> None:
    bounded = of_whole_numbers()
    assert {name for _, name, _ in bounded} >= {"limit", "offset", "revision__gte", "exceptions"}
    for path, name, largest in bounded:
        for beyond in (-1, largest + 1):
            answer = reader.get(path, {name: beyond})
            assert answer.status_code == 400, (path, name, beyond)
            assert [*answer.json()["errors"]] == [name]
