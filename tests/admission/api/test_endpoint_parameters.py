"""What API addresses may be asked with: unknown names and impossible times are refused, in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import people

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
DECISIONS = "/api/v1/decisions/"
EXTREMES = ("0001-01-01", "9999-12-31", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
LISTS = (
    "clusters", "namespaces", "limitranges", "metadatapolicies", "resourcequotas",
    "priorityclasses", "limitedresources", "credentials", "revisions", "charges", "decisions",
    "rolechanges",
)  # fmt: skip


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(people.person("reader"))
    return client


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("moment", EXTREMES)
@pytest.mark.parametrize("address", [DECISIONS, "/api/v1/revisions/"])
def test_times_beyond_the_record_are_refused_at_their_name(
    reader: Client, address: str, name: str, moment: str
) -> None:
    answer = reader.get(address, {name: moment})
    assert answer.status_code == 400
    assert name in str(answer.json())


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("moment", EXTREMES)
@pytest.mark.parametrize("address", ["/decisions/", "/decisions/export.csv"])
def test_pages_survive_times_beyond_the_record(
    reader: Client, address: str, name: str, moment: str
) -> None:
    assert reader.get(address, {name: moment}).status_code == 400


@pytest.mark.parametrize("name", LISTS)
def test_every_list_refuses_a_parameter_that_it_does_not_know(reader: Client, name: str) -> None:
    answer = reader.get(f"/api/v1/{name}/?clutser=prod")
    assert answer.status_code == 400
    [error] = answer.json()["errors"]["clutser"]
    assert error["code"] == "unknown_parameter"
    assert "limit" in error["message"]


def test_a_misspelt_parameter_is_refused_with_the_nearest_name(reader: Client) -> None:
    [error] = reader.get(f"{DECISIONS}?verdcit=denied").json()["errors"]["verdcit"]
    assert "did you mean verdict?" in error["message"]


def test_one_object_knows_none_of_the_filters_of_its_list(reader: Client) -> None:
    answer = reader.get(f"{DECISIONS}0123456789abcdef/?verdict=denied")
    assert answer.status_code == 400


@pytest.mark.parametrize("method", ["get", "post", "delete"])
@pytest.mark.parametrize("path", ["/api/", "/api/v1/", "/api/v1/limitrangs/", "/api/v2/x/y"])
def test_unknown_addresses_answer_in_json(reader: Client, method: str, path: str) -> None:
    answer = getattr(reader, method)(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert path in answer.json()["detail"]


def test_addresses_without_their_last_slash_are_still_led_on(reader: Client) -> None:
    assert reader.get("/api/v1/clusters")["Location"] == "/api/v1/clusters/"


def test_unknown_pages_stay_pages(reader: Client) -> None:
    answer = reader.get("/nothing/here/")
    assert (answer.status_code, answer["Content-Type"][:9]) == (404, "text/html")


def test_the_live_tail_has_nothing_of_a_time_beyond_the_record(reader: Client) -> None:
    query = {"after": "0000000000000000", "until": "0001-01-01"}
    assert reader.get("/decisions/newer/", query).status_code == 204


def test_the_schema_knows_its_format_and_nothing_else(reader: Client) -> None:
    assert reader.get("/api/schema/?format=json").status_code == 200
    assert reader.get("/api/schema/?formt=json").status_code == 400
