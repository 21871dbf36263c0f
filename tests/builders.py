"""Small builders of manifests, as decoded from JSON, and of requests."""

from __future__ import annotations

from typing import Any

from engine.request import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
)

Manifest = dict[str, Any]


def container(name: str = "c", **resources: Manifest) -> Manifest:
    """A container; ``requests`` and ``limits`` are maps of quantity texts."""
    return {"name": name, "image": "i", "resources": resources}


def pod(*containers: Manifest, **metadata: Any) -> Manifest:
    """A pod of the given containers, or of one without requests."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", **metadata},
        "spec": {"containers": list(containers) or [container()]},
    }


def request(
    obj: Manifest | None,
    *,
    kind: str = "Pod",
    resource: str = "pods",
    operation: Operation = Operation.CREATE,
    **more: Any,
) -> AdmissionRequest:
    """A request about an object; ``resource`` is like ``deployments.apps``."""
    plural, _, group = resource.partition(".")
    return AdmissionRequest(
        kind=GroupVersionKind(group=group, kind=kind),
        resource=GroupVersionResource(group=group, resource=plural),
        operation=operation,
        object=obj,
        **{"namespace": "ns", **more},
    )


def limit_range(*items: Manifest, name: str = "limits") -> Manifest:
    """A LimitRange of the given items."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"limits": list(items)},
    }


def metadata_policy(*rules: Manifest, name: str = "mp", **spec: Any) -> Manifest:
    """A MetadataPolicy of the given rules."""
    return {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "MetadataPolicy",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"rules": list(rules), **spec},
    }


def resource_quota(hard: Manifest, used: Manifest | None = None, **more: Any) -> Manifest:
    """A ResourceQuota with a computed status; ``more`` extends its spec, ``name`` does not."""
    name = more.pop("name", "quota")
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"hard": hard, **more},
        "status": {"hard": hard, "used": used or dict.fromkeys(hard, "0")},
    }


def claim(storage: str | None = "1Gi", **metadata: Any) -> Manifest:
    """A PersistentVolumeClaim with this storage request, or without one."""
    requests = {} if storage is None else {"storage": storage}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "ns", **metadata},
        "spec": {"resources": {"requests": requests}},
    }
