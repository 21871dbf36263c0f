"""The quality-of-service class of a pod, from its spec.

Source: ``pkg/apis/core/v1/helper/qos/qos.go``. Expects requests that API defaulting filled in.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.cache import once
from engine.pod.read import PodSpec, read_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.resource_list import ResourceList

_COUNTED = ("cpu", "memory")


class QOSClass(StrEnum):
    """The three classes."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def qos_class(pod: Mapping[str, Any] | PodSpec) -> QOSClass:
    """Compute the class from the pod's own resources if it has any, else from its containers.

    ``status.qosClass`` is never looked at, and ephemeral containers do not count. Raises
    DecodeError for a pod that cannot be read.
    """
    return _class_of(pod if isinstance(pod, PodSpec) else read_pod(pod))


@once
def _class_of(spec: PodSpec) -> QOSClass:
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    bounded = True
    if spec.has_resources:
        _count(requests, spec.requests)
        bounded = _count(limits, spec.limits) or not spec.limits
    else:
        for container in spec.all_containers:
            _count(requests, container.requests)
            bounded = _count(limits, container.limits) and bounded
    if not requests and not limits:
        return QOSClass.BEST_EFFORT
    return QOSClass.GUARANTEED if bounded and requests == limits else QOSClass.BURSTABLE


def _count(total: dict[str, int], resources: ResourceList) -> bool:
    """Add what is positive, in nanos, to a map of our own; whether that was cpu and memory."""
    complete = True
    for name in _COUNTED:
        quantity = resources.get(name)
        if quantity is not None and quantity.nano > 0:
            total[name] = total.get(name, 0) + quantity.nano
        else:
            complete = False
    return complete
