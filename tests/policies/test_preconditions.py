"""ETag, If-Match and merge patches: nobody overwrites what they have not read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from rest_framework.test import APIClient

from policies.api.bodies import merge_patch
from policies.models import PolicyRevision, ResourceQuota
from tests import factories, people

if TYPE_CHECKING:
    from django.http import HttpResponse
    from pytest_django.fixtures import SettingsWrapper

pytestmark = pytest.mark.django_db
PATCH = "application/merge-patch+json"


@pytest.fixture
def chief() -> APIClient:
    client = APIClient()
    client.force_authenticate(people.person("chief", "admin"))
    return client


@pytest.fixture
def place() -> str:
    """The address of a quota of 5 pods."""
    return f"/api/v1/resourcequotas/{factories.resource_quota({'pods': '5'}).pk}/"


def body(client: APIClient, place: str, **more: Any) -> dict[str, Any]:
    return {**client.get(place).json(), **more}


def patch(client: APIClient, place: str, change: Any, **headers: str) -> HttpResponse:
    return client.patch(place, json.dumps(change), content_type=PATCH, headers=headers)


def test_every_version_has_its_etag(chief: APIClient, place: str) -> None:
    first = chief.get(place)["ETag"]
    changed = chief.put(place, body(chief, place, spec={"hard": {"pods": "6"}}), format="json")
    assert changed["ETag"] == chief.get(place)["ETag"] != first
    made = chief.post("/api/v1/clusters/", {"name": "other"}, format="json")
    assert made["ETag"] == chief.get("/api/v1/clusters/other/")["ETag"]
    assert not chief.post("/api/v1/clusters/?dryRun=All", {"name": "c"}).has_header("ETag")


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_change_of_another_version_is_refused(chief: APIClient, place: str, method: str) -> None:
    content = None if method == "delete" else body(chief, place, spec={"hard": {"pods": "9"}})
    answer = getattr(chief, method)(place, content, format="json", headers={"If-Match": '"8"'})
    found = answer.json()
    assert (answer.status_code, found["revision"], found["etag"]) == (412, 1, '"1"')
    assert ResourceQuota.objects.get().to_manifest()["spec"] == {"hard": {"pods": "5"}}


@pytest.mark.parametrize("given", ['"1"', '"7", "1"', "*"])
@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_change_of_the_version_that_was_read_is_accepted(
    chief: APIClient, place: str, method: str, given: str
) -> None:
    content = None if method == "delete" else body(chief, place, spec={"hard": {"pods": "9"}})
    answer = getattr(chief, method)(place, content, format="json", headers={"If-Match": given})
    assert answer.status_code == (204 if method == "delete" else 200)


@pytest.mark.parametrize("given", ["1", "", '"1', "W/1"])
def test_if_match_that_is_no_list_of_etags_is_refused(
    chief: APIClient, place: str, given: str
) -> None:
    answer = chief.delete(place, headers={"If-Match": given})
    assert answer.status_code == 400
    assert [*answer.json()["errors"]] == ["If-Match"]
    assert ResourceQuota.objects.exists()


def test_etag_that_a_proxy_made_weak_names_the_same_version(chief: APIClient, place: str) -> None:
    assert chief.delete(place, headers={"If-Match": 'W/"2"'}).status_code == 412
    assert chief.delete(place, headers={"If-Match": 'W/"1"'}).status_code == 204


def test_setting_asks_for_the_header(
    chief: APIClient, place: str, settings: SettingsWrapper
) -> None:
    settings.GATEHOUSE_API_REQUIRE_IF_MATCH = True
    limits = "/api/v1/limitedresources/prod/"
    cluster = "/api/v1/clusters/prod/?confirm=prod"
    whole = body(chief, place)
    for method, path, content in (
        ("put", place, whole), ("patch", place, {"reason": "x"}), ("delete", place, None),
        ("put", limits, {"limitedResources": []}), ("delete", cluster, None),
    ):  # fmt: skip
        assert getattr(chief, method)(path, content, format="json").status_code == 428
    headers = {"If-Match": chief.get(place)["ETag"]}
    assert chief.put(place, whole, format="json", headers=headers).status_code == 200
    assert chief.post("/api/v1/clusters/", {"name": "new"}, format="json").status_code == 201


def test_limited_resources_have_an_etag_of_their_content(chief: APIClient, place: str) -> None:
    del place
    address = "/api/v1/limitedresources/prod/"
    empty = chief.get(address)["ETag"]
    entries = {"limitedResources": [{"resource": "pods", "matchContains": ["cpu"]}]}
    written = chief.put(address, entries, format="json", headers={"If-Match": empty})
    assert (written.status_code, written["ETag"]) == (200, chief.get(address)["ETag"])
    late = chief.put(address, entries, format="json", headers={"If-Match": empty})
    assert late.status_code == 412


def test_patch_changes_what_it_names(chief: APIClient, place: str) -> None:
    chief.put(
        place,
        body(chief, place, enforcement="warn", spec={"hard": {"pods": "5", "services": "2"}}),
        format="json",
    )
    change = {"spec": {"hard": {"pods": "6", "services": None}}, "reason": "more room"}
    answer = patch(chief, place, change)
    found = answer.json()
    assert (answer.status_code, found["spec"]) == (200, {"hard": {"pods": "6"}})
    assert (found["enforcement"], found["revision"], answer["ETag"]) == ("warn", 3, '"3"')
    assert PolicyRevision.objects.latest("id").reason == "more room"


def test_patch_takes_labels_off(chief: APIClient, place: str) -> None:
    patch(chief, place, {"metadata": {"labels": {"a": "1", "b": "2"}}})
    found = patch(chief, place, {"metadata": {"labels": {"a": None}}}).json()
    assert found["metadata"]["labels"] == {"b": "2"}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"spec": {"hardd": {}}}, 422), ({"speck": {}}, 422), ([], 422), ("text", 422), (None, 422),
        ({"spec": {"hard": {"pods": "ten"}}}, 422), ({"spec": {"hard": {"pods": "-1"}}}, 400),
        ({"spec": None}, 400), ({"kind": "LimitRange"}, 422), ({"revision": 9}, 409),
    ],
)  # fmt: skip
def test_patch_is_checked_like_every_body(
    chief: APIClient, place: str, change: Any, status: int
) -> None:
    assert patch(chief, place, change).status_code == status
    assert ResourceQuota.objects.get().revision == 1


def test_patch_that_changes_nothing_writes_no_revision(chief: APIClient, place: str) -> None:
    assert patch(chief, place, {}).json()["revision"] == 1
    tried = chief.patch(
        f"{place}?dryRun=All", json.dumps({"spec": {"hard": {"pods": "7"}}}), content_type=PATCH
    )
    assert tried.json()["spec"] == {"hard": {"pods": "7"}}
    assert ResourceQuota.objects.get().revision == 1


def test_every_recorded_kind_can_be_patched(chief: APIClient) -> None:
    labels = {"metadata": {"labels": {"a": "b"}}}
    limit_range = factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    for path, change in (
        (f"limitranges/{limit_range.pk}/", labels),
        (f"priorityclasses/{factories.priority_class().pk}/", labels),
        (f"namespaces/{factories.namespace().pk}/", labels),
        ("clusters/prod/", {"description": "d"}),
    ):
        answer = patch(chief, f"/api/v1/{path}", change)
        assert answer.status_code == 200, answer.content
        found = answer.json()
        kept = {"labels": found["metadata"]["labels"]} if "metadata" in found else found
        assert kept.items() >= change.get("metadata", change).items()


def test_merge_patch_is_accepted_by_patch_alone(chief: APIClient, place: str) -> None:
    content = json.dumps(body(chief, place))
    assert chief.put(place, content, content_type=PATCH).status_code == 415


def test_viewer_patches_nothing(place: str) -> None:
    client = APIClient()
    client.force_authenticate(people.person("reader"))
    assert patch(client, place, {"spec": {"hard": {}}}).status_code == 403


@pytest.mark.parametrize(
    ("target", "change", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_follows_the_cases_of_the_standard(target: Any, change: Any, merged: Any) -> None:
    assert merge_patch(target, change) == merged
