"""Builders of AdmissionReviews in an API server's format, and of sample policies."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import uuid4

from tests.builders import Manifest, container, pod

SEED_LIMITS: Manifest = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "limits", "namespace": "ns"},
    "spec": {
        "limits": [
            {
                "type": "Container",
                "min": {"cpu": ".1", "memory": "250Mi"},
                "max": {"cpu": "1", "memory": "1Gi"},
                "default": {"cpu": "500m", "memory": "500Mi"},
                "defaultRequest": {"cpu": "250m", "memory": "250Mi"},
                "maxLimitRequestRatio": {"cpu": "4"},
            }
        ]
    },
}


def quota(name: str = "pods", *, namespace: str = "ns", **spec: Any) -> Manifest:
    """A ResourceQuota; ``spec`` as on the wire, by default ``hard`` of one pod."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": {"pods": "1"}, **spec},
    }


def review(obj: Any = None, **request: Any) -> Manifest:
    """A review about an object, by default of a pod that is created; a new uid each time."""
    obj = pod(container()) if obj is None else obj
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": str(uuid4()),
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "ns",
            "operation": "CREATE",
            "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
            "object": obj,
            "oldObject": None,
            "dryRun": False,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
            **request,
        },
    }


def new_pod(name: str = "p", *containers: Manifest, namespace: str = "ns", **spec: Any) -> Manifest:
    """A pod as a validating webhook receives it: with a uid of its own."""
    made = pod(*containers, name=name, namespace=namespace, uid=str(uuid4()))
    made["spec"].update(spec)
    return made


def patch_of(answer: Manifest) -> list[Manifest]:
    """The operations of an answer's patch."""
    text = base64.b64decode(answer["response"].get("patch", "W10="))
    operations: list[Manifest] = json.loads(text)
    return operations
