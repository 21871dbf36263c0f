"""Plans as the portal answers them."""

from __future__ import annotations

from typing import Any

ADDRESS = "/api/v1/apply/"
CONFLICT = {
    "field": "spec.hard[pods]",
    "manager": "ui:anna",
    "commit": "",
    "time": "2026-01-02T00:00:00Z",
    "revision": 4,
    "removed": False,
}
BLOCKED = {"code": "conflict", "message": "1 field is managed by others"}


def planned(action: str = "change", name: str = "compute", **members: Any) -> dict[str, Any]:
    return {
        "kind": "ResourceQuota",
        "namespace": "team",
        "name": name,
        "action": action,
        "changes": [],
        "diff": "",
        "conflicts": [],
        "kept": [],
        "revision": 3,
        **members,
    }


def plan(*objects: dict[str, Any], **members: Any) -> dict[str, Any]:
    actions = [each["action"] for each in objects]
    known = ("create", "change", "delete", "unchanged", "conflict")
    return {
        "cluster": "prod",
        "set": "platform",
        "manager": "git:platform",
        "commit": "",
        "dryRun": True,
        "applied": False,
        "change": None,
        "counts": {action: actions.count(action) for action in known},
        "objects": list(objects),
        "left": [],
        "others": [],
        "blocked": [],
        "hints": [],
        **members,
    }
