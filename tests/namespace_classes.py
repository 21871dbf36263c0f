"""Namespace classes for tests: manifests, written by the product's services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies import services

if TYPE_CHECKING:
    from collections.abc import Sequence


def limits(cpu: str, *, name: str = "defaults") -> dict[str, Any]:
    item = {"type": "Container", "default": {"cpu": cpu}}
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name},
        "spec": {"limits": [item]},
    }


def quota(*, name: str = "amounts", **hard: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": hard or {"pods": "10"}},
    }


def class_manifest(
    name: str = "team",
    *,
    names: Sequence[str] = (),
    labels: dict[str, str] | None = None,
    policies: Sequence[dict[str, Any]] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    selector: dict[str, Any] = {"names": list(names)} if names else {}
    if labels:
        selector["matchLabels"] = labels
    if policies is None:
        policies = [limits("500m"), quota(pods="$(pods)")]
        spec["parameters"] = [{"name": "pods", "type": "quantity", "default": "10"}]
    return {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "NamespaceClass",
        "metadata": {"name": name},
        "spec": {"selector": selector, **spec, "policies": list(policies)},
    }


def saved_class(
    name: str = "team", *, version: int | None = None, confirmed: int = 0, **spec: Any
) -> services.SavedClass:
    """Store a class; ``version`` is the one that the change is based on."""
    return services.save_class(
        manifest=class_manifest(name, **spec),
        user="ann",
        reason="test",
        expected_version=version,
        confirmed=confirmed,
    )
