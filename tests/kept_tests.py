"""Manifests of kept tests: a pod with limits, and the answer that is expected."""

from __future__ import annotations

from typing import Any

from engine.metadata_policy import API_VERSION

MAX_REASON = "MaxConstraint"


def pod(cpu: Any = "3", **metadata: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "app:1", "resources": {"limits": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", **metadata},
        "spec": {"containers": [container]},
    }


def denied(*reasons: str) -> dict[str, Any]:
    return {"verdict": "deny", **({"reasons": list(reasons)} if reasons else {})}


def kept(name: str = "too-large", *, namespace: str = "team", **spec: Any) -> dict[str, Any]:
    """A test of ``team``: a pod of three CPUs is denied."""
    known = {"operation": "CREATE", "expect": denied(MAX_REASON), "object": pod(), **spec}
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyTest",
        "metadata": {"name": name, "namespace": namespace},
        "spec": known,
    }
