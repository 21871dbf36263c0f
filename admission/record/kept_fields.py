"""Shapes of the kept fields by kind (pod spec, status, metadata), made into msgspec types.

A shape maps names to shapes of their values; a list of one shape applies to each entry of a list.
``excerpt_of`` serves objects of the usual types in plain requests: there it gives the very text
that ``redaction`` gives, in a fifth of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Union

import msgspec
import orjson

from engine.names import LAST_APPLIED
from engine.pod import ALL_CONTAINER_LISTS, ALL_STATUS_LISTS

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ANNOTATION: Final = 512  # characters; values that selectors compare are far shorter

Shape = dict[str, Any]
WHOLE: Final = "whole"
ANNOTATIONS: Final = "annotations"
_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": WHOLE,
    "preferredDuringSchedulingIgnoredDuringExecution": WHOLE,
}
_CONTAINERS = [
    dict.fromkeys(("name", "image", "resources", "restartPolicy", "resizePolicy"), WHOLE)
]
_CONTAINER_STATUSES = [dict.fromkeys(("name", "resources", "allocatedResources"), WHOLE)]
_METADATA: Shape = {
    **dict.fromkeys(
        (
            "name",
            "generateName",
            "namespace",
            "uid",
            "labels",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "finalizers",
            "ownerReferences",
            "generation",
            "resourceVersion",
        ),
        WHOLE,
    ),
    "annotations": ANNOTATIONS,
}
_POD_SPEC: Shape = {
    **dict.fromkeys(
        (
            "resources",
            "overhead",
            "priorityClassName",
            "priority",
            "preemptionPolicy",
            "activeDeadlineSeconds",
            "schedulerName",
            "restartPolicy",
            "nodeName",
            "runtimeClassName",
            "os",
            "resourceClaims",
        ),
        WHOLE,
    ),
    **dict.fromkeys(ALL_CONTAINER_LISTS, _CONTAINERS),
    "affinity": {"podAffinity": _AFFINITY, "podAntiAffinity": _AFFINITY},
}
_POD_STATUS: Shape = {
    **dict.fromkeys(("phase", "qosClass", "resize", "resources", "allocatedResources"), WHOLE),
    "conditions": [dict.fromkeys(("type", "status", "reason"), WHOLE)],
    **dict.fromkeys(ALL_STATUS_LISTS, _CONTAINER_STATUSES),
}
_TEMPLATE: Shape = {"metadata": _METADATA, "spec": _POD_SPEC}
_WORKLOAD: Shape = {
    **dict.fromkeys(("replicas", "parallelism", "completions", "selector"), WHOLE),
    "template": _TEMPLATE,
}
_WORKLOADS: Final = (
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "Job",
)
_SPECS: Final[dict[str, Shape]] = {
    "Pod": {"spec": _POD_SPEC, "status": _POD_STATUS},
    "PodTemplate": {"template": _TEMPLATE},
    "Service": {
        "spec": {
            **dict.fromkeys(("type", "allocateLoadBalancerNodePorts", "loadBalancerClass"), WHOLE),
            "ports": [dict.fromkeys(("name", "port", "nodePort", "protocol"), WHOLE)],
        }
    },
    "PersistentVolumeClaim": {
        "spec": dict.fromkeys(
            ("resources", "storageClassName", "volumeAttributesClassName", "accessModes"), WHOLE
        ),
        "status": dict.fromkeys(
            (
                "phase",
                "capacity",
                "allocatedResources",
                "currentVolumeAttributesClassName",
                "modifyVolumeStatus",
            ),
            WHOLE,
        ),
    },
    "ResourceClaim": {"spec": {"devices": {"requests": WHOLE}}},
    "CronJob": {"spec": {"schedule": WHOLE, "jobTemplate": {"spec": _WORKLOAD}}},
    "LimitRange": {"spec": WHOLE},
    "ResourceQuota": {"spec": WHOLE, "status": WHOLE},
    "MetadataPolicy": {"spec": WHOLE},
    "PriorityClass": dict.fromkeys(
        ("value", "globalDefault", "preemptionPolicy", "description"), WHOLE
    ),
    **{kind: {"spec": _WORKLOAD} for kind in _WORKLOADS},
}
OTHER_SHAPE: Final[Shape] = {"apiVersion": WHOLE, "kind": WHOLE, "metadata": _METADATA}
SHAPES: Final[dict[str, Shape]] = {kind: {**OTHER_SHAPE, **spec} for kind, spec in _SPECS.items()}
"""By kind; every other object keeps ``OTHER_SHAPE``."""
_LEVELS: Final = 3  # of nested lists and maps in ``WHOLE``; each doubles the time to compile
_ATOM: Final = Union[None, bool, int, str]  # noqa: UP007 - made of values, while running
_LAST_APPLIED: Final = LAST_APPLIED.encode()


def excerpt_of(value: Mapping[str, Any] | None, *, kind: str) -> orjson.Fragment | None:
    """The kept fields of an object as JSON; None where a field has an unusual type."""
    try:
        excerpt = msgspec.json.encode(msgspec.convert(value, _TYPES.get(kind, _OTHER_TYPE)))
    except msgspec.ValidationError:
        return None
    return None if _LAST_APPLIED in excerpt else orjson.Fragment(excerpt)


def _type_of(shape: Any, type_name: str) -> Any:
    """Turn a shape into a msgspec type: it drops other names, and leaves out missing ones."""
    if shape is WHOLE:
        return _ANY_JSON
    if shape is ANNOTATIONS:
        short_annotation = Annotated[str, msgspec.Meta(max_length=MAX_ANNOTATION)]
        return dict[str, short_annotation] | None
    if isinstance(shape, list):
        return list[_type_of(shape[0], type_name)] | None  # type: ignore[misc]  # made while running
    fields = [
        (kept_name, Union[_type_of(shape_below, kept_name), msgspec.UnsetType], msgspec.UNSET)  # noqa: UP007
        for kept_name, shape_below in shape.items()
    ]
    return msgspec.defstruct(type_name, fields) | None


def _compiled_type(shape: Any, type_name: str) -> Any:
    """Make a type and have the library compile it now.

    It would compile it at the first use, and a second thread that used it meanwhile would find it
    half compiled and crash the process. The import lock keeps other threads away.
    """
    kept_type = _type_of(shape, type_name)
    msgspec.convert(None, kept_type)
    return kept_type


_ANY_JSON: Any = _ATOM
for _ in range(_LEVELS):
    _ANY_JSON = Union[_ATOM, list[_ANY_JSON], dict[str, _ANY_JSON]]  # noqa: UP007
_OTHER_TYPE: Final = _compiled_type(OTHER_SHAPE, "Other")
_TYPES: Final = {kind: _compiled_type(shape, kind) for kind, shape in SHAPES.items()}
