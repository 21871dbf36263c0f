"""Tables of the fields that the record keeps of each kind of object.

A shape maps names to what is kept under them; a list of one shape stands for each entry of a list.
"""

from __future__ import annotations

from typing import Any, Final

from engine.pod import ALL_CONTAINER_LISTS, ALL_STATUS_LISTS

MAX_ANNOTATION: Final = 512  # characters; what a selector compares is far shorter
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

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
