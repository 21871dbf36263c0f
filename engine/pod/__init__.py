"""The resources of pods: read, default, sum up, classify and validate them as API servers do.

No rule of a policy lives here. Only ``spec`` and the resources in ``status`` are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.pod.defaults import complete_pod, default_claim, default_pod, read_settled
from engine.pod.read import (
    ALL_CONTAINER_LISTS,
    ALL_STATUS_LISTS,
    CONTAINER_LISTS,
    Container,
    PodSpec,
    read_pod,
)
from engine.pod.totals import (
    PodTotals,
    QOSClass,
    has_pod_level_resources,
    limit_range_totals,
    qos_class,
    quota_totals,
)
from engine.pod.validation import (
    container_name_errors,
    resource_errors,
    resource_name_texts,
    validate_requirements,
    validate_resources,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ALL_CONTAINER_LISTS",
    "ALL_STATUS_LISTS",
    "CONTAINER_LISTS",
    "Container",
    "PodSpec",
    "PodTotals",
    "QOSClass",
    "complete_pod",
    "container_name_errors",
    "default_claim",
    "default_pod",
    "has_pod_level_resources",
    "is_terminal",
    "limit_range_totals",
    "qos_class",
    "quota_totals",
    "read_pod",
    "read_settled",
    "resource_errors",
    "resource_name_texts",
    "validate_requirements",
    "validate_resources",
]

_TERMINAL = ("Succeeded", "Failed")  # a tuple compares: a phase may be any JSON, even unhashable


def is_terminal(pod: Mapping[str, Any]) -> bool:
    """Whether all containers have ended for good, so that the pod uses nothing."""
    status = pod.get("status")
    return isinstance(status, dict) and status.get("phase") in _TERMINAL
