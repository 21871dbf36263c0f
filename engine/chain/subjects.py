"""The subject of a request: pod, claim or workload; and requests with another object in them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.request import AdmissionRequest

TEMPLATE_PATHS: Final = {
    "deployments.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "replicasets.apps": ("spec", "template"),
    "replicationcontrollers": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}


def is_pod(request: AdmissionRequest) -> bool:
    """Whether the object is a whole Pod: of ``pods`` or of one of its pod-shaped subresources."""
    return str(request.resource) == "pods" and request.sub_resource in (
        "",
        "resize",
        "status",
        "ephemeralcontainers",
    )


def is_resize(request: AdmissionRequest) -> bool:
    """Whether a pod's resources are changed in place."""
    return str(request.resource) == "pods" and request.sub_resource == "resize"


def is_claim(request: AdmissionRequest) -> bool:
    """Whether the object is a PersistentVolumeClaim."""
    return str(request.resource) == "persistentvolumeclaims"


def restate(request: AdmissionRequest, obj: Mapping[str, Any]) -> AdmissionRequest:
    """Ask the same about another state of the object."""
    if request.object is obj:
        return request
    return dataclasses.replace(request, object=obj, is_plain=False)
