"""Discovery of resources on the API server, whose answers are validated."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sync.client.kinds import METADATA, find_resource, kind_at, names_alone
from sync.errors import APIError, GarbageError, InvalidError, NotFoundError
from sync.values import Listing

WIDGETS: dict[str, Any] = {
    "name": "widgets",
    "kind": "Widget",
    "namespaced": True,
    "verbs": ["list"],
}
VERSIONS = [{"version": "v2"}, {"version": "v1"}]


def found(v2: Any, v1: Any = (), *, versions: Any = VERSIONS, name: str = "widgets") -> Any:
    """Look for widgets where the preferred version has these resources and the older one those."""
    answers = {
        "apis/example.com": {"preferredVersion": {"version": "v2"}, "versions": versions},
        "apis/example.com/v2": {"resources": v2},
        "apis/example.com/v1": {"resources": list(v1)},
        "api/v1": {"resources": [{**WIDGETS, "name": "secrets", "kind": "Secret"}]},
    }
    return find_resource(answers.__getitem__, "" if name == "secrets" else "example.com", name)


def test_preferred_version_counts() -> None:
    assert found([WIDGETS], [WIDGETS]) == ("v2", "Widget")
    assert found([], [WIDGETS]) == ("v1", "Widget")
    assert found([], name="secrets") == ("v1", "Secret")


@pytest.mark.parametrize(
    ("resources", "error"),
    [
        ([], NotFoundError),
        ([{**WIDGETS, "namespaced": False}], NotFoundError),
        ([{**WIDGETS, "verbs": ["get"]}], NotFoundError),
        ([{**WIDGETS, "kind": ""}], NotFoundError),
        (["widgets", None], NotFoundError),
        ("widgets", GarbageError),
        (None, GarbageError),
    ],
)
def test_what_cannot_be_listed_is_not_served(resources: Any, error: type[APIError]) -> None:
    with pytest.raises(error):
        found(resources)


@pytest.mark.parametrize("version", ["../..", "", None, 2])
def test_version_that_would_lead_elsewhere_is_garbage(version: Any) -> None:
    with pytest.raises(GarbageError):
        found([], versions=[{"version": version}])


@pytest.mark.parametrize("name", ["../secrets", "a/b", "", "a b"])
def test_name_that_would_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(InvalidError):
        found([], name=name)


def test_only_what_names_an_object_is_kept() -> None:
    metadata = {"name": "a", "uid": "u", "annotations": {"last-applied": "password"}}
    listing = Listing(({"metadata": metadata},), "1", datetime.now(UTC))
    [item] = names_alone(listing).items
    assert item["metadata"] == {"name": "a", "namespace": "", "uid": "u", "resourceVersion": ""}


def test_kind_is_made_for_one_address_without_being_known_elsewhere() -> None:
    one, other = (kind_at(group, "v1", "things") for group in ("a.example.com", "b.example.com"))
    assert (one.kind, one.plural, one.is_namespaced) == (METADATA, "things", True)
    assert (one.api_version, other.api_version) == ("a.example.com/v1", "b.example.com/v1")
