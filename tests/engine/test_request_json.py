"""Requests concluded from manifests."""

from __future__ import annotations

from typing import Any

import pytest

from engine.request_json import request_for

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
