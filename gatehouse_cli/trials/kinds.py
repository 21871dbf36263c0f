"""What is judged of a file: the kinds of namespaces, their apiVersions; why others are skipped."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from engine.metadata_policy import API_VERSION as POLICY_VERSION
from engine.policy_manifests import is_cluster_scoped

if TYPE_CHECKING:
    from policies.manifests.objects import BundleObject

API_VERSIONS: Final = {
    "Pod": "v1",
    "PodTemplate": "v1",
    "ReplicationController": "v1",
    "PersistentVolumeClaim": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "LimitRange": "v1",
    "ResourceQuota": "v1",
    "MetadataPolicy": POLICY_VERSION,
}
"""Workloads, claims and policies: the engine knows their fields, so that their version matters."""
_OTHERS: Final = {
    "": ("ConfigMap", "Endpoints", "Secret", "Service", "ServiceAccount"),
    "autoscaling": ("HorizontalPodAutoscaler",),
    "networking.k8s.io": ("Ingress", "NetworkPolicy"),
    "policy": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io": ("Role", "RoleBinding"),
    "resource.k8s.io": ("ResourceClaim", "ResourceClaimTemplate"),
}
"""Kinds of namespaces that quotas count and metadata policies judge by their metadata alone."""
_OUTSIDE: Final = frozenset({"Namespace", "List", "PolicyTest"})
_KNOWN: Final = (*API_VERSIONS, *(kind for kinds in _OTHERS.values() for kind in kinds))
_OWN_GROUPS: Final = frozenset({"", "apps", "batch", *_OTHERS})


def kind_problem(item: BundleObject) -> tuple[str, str, str] | None:
    """Field, message and hint about a kind or version that no API server serves; None if well."""
    version = item.value.get("apiVersion")
    if not isinstance(version, str) or not version:
        return "apiVersion", "Required value", f"such as {API_VERSIONS.get(item.kind, 'v1')}"
    group = version.rpartition("/")[0]
    known_version = API_VERSIONS.get(item.kind)
    # Other makers have Jobs, too: their groups are domains.
    if known_version not in (None, version) and (
        "." not in group or known_version == POLICY_VERSION
    ):
        message = f'no kind "{item.kind}" in version "{version}"'
        return "apiVersion", message, f"write {known_version}"
    if known_version is None and group in _OWN_GROUPS and item.kind not in _KNOWN:
        near_kinds = difflib.get_close_matches(item.kind, _KNOWN, n=1, cutoff=0.85)
        if near_kinds:
            return "kind", f'unknown kind "{item.kind}"', f"did you mean {near_kinds[0]}?"
    return None


def is_judged(item: BundleObject) -> bool:
    """Whether policies of a namespace can concern an object.

    A kind that is not known here, as of a custom resource, is in a namespace if it names one.
    """
    if is_cluster_scoped(item.kind) or item.kind in _OUTSIDE:
        return False
    group = str(item.value.get("apiVersion")).rpartition("/")[0]
    if API_VERSIONS.get(item.kind) == item.value.get("apiVersion"):
        return True
    return item.kind in _OTHERS.get(group, ()) or bool(item.namespace)


def opened(value: Any) -> list[Any] | None:
    """The members of a list of objects, each with its kind; None for any other value."""
    if not isinstance(value, dict) or not str(value.get("kind")).endswith("List"):
        return None
    members = value.get("items")
    if not isinstance(members, list):
        return None
    kind = str(value["kind"]).removesuffix("List")
    # Servers leave out what the members of a typed list have in common.
    shared = {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}
    return [{**shared, **each} if isinstance(each, dict) else each for each in members]
