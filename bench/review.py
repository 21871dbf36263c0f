"""The reviews that are sent and the policies that decide them, read from `manifests.yaml`."""

from __future__ import annotations

import copy
import json
import secrets
import uuid
from pathlib import Path
from typing import Any, Final

import yaml

CLUSTER: Final = "bench"
PRIORITY: Final = "production"
REQUEST_UID: Final = "00000000-0000-4000-8000-00000000000a"
OBJECT_UID: Final = "00000000-0000-4000-8000-00000000000b"
NAMESPACE: Final = "nsp-0000"
SUFFIX: Final = "q0q0q"
SPREAD: Final = tuple(f"team-{number:03d}" for number in range(100))
HOT: Final = ("hot-0000",)
TIGHT: Final = ("tight-00", "tight-01", "tight-02")
TIGHT_PODS: Final = 300
FULL: Final = ("full-000",)
_FILE: Final = Path(__file__).with_name("manifests.yaml")
_REVIEW, _LIMIT_RANGE, _METADATA_POLICY, _QUOTA = yaml.safe_load_all(_FILE.read_text("utf-8"))


def template() -> dict[str, Any]:
    """The AdmissionReview of one pod that is created, with marks in place of what differs."""
    # By way of JSON: what the file names twice by an alias must not be one object.
    made: dict[str, Any] = json.loads(json.dumps(_REVIEW))
    return made


def template_bytes(review: dict[str, Any] = _REVIEW) -> bytes:
    """The template as an API server writes it: compact JSON, about 5.4 kB."""
    return json.dumps(review, separators=(",", ":")).encode()


def fresh(namespace: str = SPREAD[0], review: dict[str, Any] = _REVIEW) -> bytes:
    """A review with uids and a name that nobody saw before."""
    body = template_bytes(review).replace(NAMESPACE.encode(), namespace.encode())
    for mark in (REQUEST_UID, OBJECT_UID):
        body = body.replace(mark.encode(), str(uuid.uuid4()).encode())
    return body.replace(SUFFIX.encode(), secrets.token_hex(3)[:5].encode())


def _of(manifest: dict[str, Any], namespace: str, name: str) -> dict[str, Any]:
    return {**copy.deepcopy(manifest), "metadata": {"name": name, "namespace": namespace}}


def limit_range(namespace: str) -> dict[str, Any]:
    """Bounds and defaults for containers and pods; the template keeps to them."""
    return _of(_LIMIT_RANGE, namespace, "lr")


def metadata_policy(namespace: str, name: str = "mp") -> dict[str, Any]:
    """Three rules; one refuses pods without a team."""
    return _of(_METADATA_POLICY, namespace, name)


def quota(namespace: str) -> dict[str, Any]:
    """A quota on one priority class: practically unlimited, or 300 pods, or none."""
    made = _of(_QUOTA, namespace, "rq")
    pods = {**dict.fromkeys(TIGHT, str(TIGHT_PODS)), **dict.fromkeys(FULL, "0")}
    if namespace in pods:
        made["spec"]["hard"]["pods"] = pods[namespace]
    return made


def refused() -> dict[str, dict[str, Any]]:
    """Reviews that must be refused, by the reason's name; what any policy engine must see."""
    without_team, too_much = template(), template()
    del without_team["request"]["object"]["metadata"]["labels"]["team"]
    container = too_much["request"]["object"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"cpu": "16", "memory": "512Mi"}
    container["resources"]["requests"]["cpu"] = "4"
    return {"RejectedByRule": without_team, "MaxConstraint": too_much}
