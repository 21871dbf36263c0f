"""Requests concluded from manifests."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import DecodeError
from engine.request_json import build_request, complete_request, request_for

Shape = dict[str, Any]


@pytest.mark.parametrize(
    ("obj", "resource"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "pods"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "deployments.apps"),
        ({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}, "ingresses.networking.k8s.io"),
        ({"kind": "NetworkPolicy"}, "networkpolicies.networking.k8s.io"),
        ({"apiVersion": "example.com/v1", "kind": "Bus"}, "buses.example.com"),
    ],
)
def test_resource_follows_from_the_kind(obj: Shape, resource: str) -> None:
    assert str(request_for(obj, namespace="ns").resource) == resource


def test_kinds_outside_namespaces_get_none() -> None:
    assert request_for({"kind": "ClusterRole"}).namespace == ""
    assert request_for({"kind": "Pod"}).namespace == "default"


def test_long_kinds_are_read_like_others() -> None:
    kind = "K" * 300
    assert str(request_for({"apiVersion": "example.com/v1", "kind": kind}).resource) == (
        f"{kind.lower()}s.example.com"
    )


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"kind": "Pod"}, "kind"),
        ({"kind": {"kind": 5}}, "kind.kind"),
        ({"kind": {"version": "v1"}}, "kind.kind"),
        ({"userInfo": []}, "userInfo"),
        ({"userInfo": {"username": 5}}, "userInfo.username"),
        ({"dryRun": "yes"}, "dryRun"),
        ({"operation": "PATCH"}, "operation"),
        ({"oldObject": "x"}, "oldObject"),
    ],
)
def test_a_wrong_part_is_named(part: Shape, field: str) -> None:
    whole = {
        "kind": {"version": "v1", "kind": "Pod"},
        "resource": {"version": "v1", "resource": "pods"},
        "operation": "CREATE",
    }
    assert build_request(whole).kind.kind == "Pod"
    with pytest.raises(DecodeError) as refused:
        build_request({**whole, **part})
    assert refused.value.field == field


def test_what_a_review_says_wins_over_its_object() -> None:
    obj = {"kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
    given = complete_request({"object": obj, "name": "c", "namespace": "d"})
    concluded = complete_request({"object": obj})
    assert (given.name, given.namespace) == ("c", "d")
    assert (concluded.name, concluded.namespace) == ("a", "b")
    assert complete_request({"kind": {"kind": "Pod"}, "object": None}).namespace == "default"
