"""Objects as the API answers them."""

from __future__ import annotations

from typing import Any

RECORDED = {
    "id": 7,
    "uid": "5f0c",
    "revision": 3,
    "created": "2026-01-01T00:00:00Z",
    "updated": "2026-01-02T00:00:00Z",
}


def quota(
    name: str = "compute", *, namespace: str = "team", cluster: str = "prod", **members: Any
) -> dict[str, Any]:
    return {
        **RECORDED,
        "cluster": cluster,
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": {"pods": "10"}},
        "enforcement": "enforce",
        "warnings": [],
        "status": {"hard": {"pods": "10"}, "used": {"pods": "4"}},
        **members,
    }


def namespace(name: str = "team", *, cluster: str = "prod", **members: Any) -> dict[str, Any]:
    return {
        **RECORDED,
        "cluster": cluster,
        "metadata": {"name": name},
        "phase": "Active",
        **members,
    }


def decision(name: str = "web-1", verdict: str = "denied", **members: Any) -> dict[str, Any]:
    """A line of the list; ``id`` is sixteen characters long."""
    return {
        "id": "0123456789abcdef",
        "created": "2026-01-01T00:00:00Z",
        "cluster": "prod",
        "phase": "validate",
        "operation": "CREATE",
        "api_group": "",
        "kind": "Pod",
        "sub_resource": "",
        "namespace": "team",
        "name": name,
        "user": "bob",
        "verdict": verdict,
        "code": 403,
        "reason": "Forbidden",
        "message": "exceeded quota",
        "dry_run": False,
        "duration_us": 1200,
        "authority": "portal",
        **members,
    }


def revision(number: int = 3, **members: Any) -> dict[str, Any]:
    return {
        "id": 40 + number,
        "before": None,
        "after": {},
        "cluster": "prod",
        "namespace": "team",
        "kind": "ResourceQuota",
        "name": "compute",
        "uid": "5f0c",
        "number": number,
        "action": "update",
        "user": "anna",
        "manager": "git:platform",
        "commit": "3f2a91c0ffee00",
        "reason": "more room",
        "created": "2026-01-02T00:00:00Z",
        "cluster_revision": 9,
        **members,
    }
