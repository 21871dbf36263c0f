"""Policies given as manifests to a PolicySet, decoded; a kind's group, scope, plural.

The command line, the simulation and the tests read such manifests, which no database holds.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.limit_range import decode_limit_range
from engine.metadata_policy import decode_metadata_policy
from engine.policy import (
    PolicySet,
    ResourceQuota,
    decode_enforcement,
    decode_in_api_server,
)
from engine.resource_quota import (
    decode_limited_resources,
    decode_resource_quota,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.policy import LimitRange, MetadataPolicy

    Policy = LimitRange | MetadataPolicy | ResourceQuota

_DECODERS: Final[dict[str, Callable[[Mapping[str, Any]], Policy]]] = {
    "LimitRange": decode_limit_range,
    "MetadataPolicy": decode_metadata_policy,
    "ResourceQuota": decode_resource_quota,
}
_GROUPS: Final = {
    "apps": ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
    "batch": ("Job", "CronJob"),
    "policy.gatehouse.dev": ("MetadataPolicy",),
    "resource.k8s.io": ("ResourceClaim", "ResourceClaimTemplate"),
    "networking.k8s.io": ("Ingress", "NetworkPolicy"),
}
_CLUSTER_SCOPED: Final = frozenset(
    {
        "APIService",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "CSIDriver",
        "CSINode",
        "CustomResourceDefinition",
        "DeviceClass",
        "IngressClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "RuntimeClass",
        "StorageClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "VolumeAttributesClass",
    }
)
_GROUP_OF: Final = {kind: group for group, kinds in _GROUPS.items() for kind in kinds}


def is_policy(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is a LimitRange, a ResourceQuota or a MetadataPolicy."""
    # A tuple compares, where a dict would hash: the kind may be any JSON, and lists have no hash.
    return manifest.get("kind") in tuple(_DECODERS)


def build_policy_set(
    manifests: Sequence[Any],
    limited_resources: object = None,
    *,
    namespace: str = "",
    version: KubernetesVersion = DEFAULT_VERSION,
) -> PolicySet:
    """Decode manifests into the policy set of one namespace; raises ``DecodeError``.

    Manifests of other kinds and namespaces are left out; one without a namespace belongs to this
    one. Fields of errors begin with ``policies[i]`` or ``limitedResources``.
    """
    policies = [
        policy
        for index, manifest in enumerate(manifests)
        if (policy := decode_policy(manifest, f"policies[{index}]")) is not None
        and policy.namespace in ("", namespace)
    ]
    in_namespace = [dataclasses.replace(policy, namespace=namespace) for policy in policies]
    return PolicySet(
        namespace=namespace,
        limit_ranges=_policies_of("LimitRange", in_namespace),
        metadata_policies=_policies_of("MetadataPolicy", in_namespace),
        resource_quotas=_policies_of("ResourceQuota", in_namespace),
        limited_resources=_decode_limited_list(limited_resources),
        version=version,
    )


def decode_policy(manifest: object, path: str) -> Policy | None:
    """Decode one manifest, its enforcement from its annotation; None for other kinds.

    Raises ``DecodeError``, its field below ``path``.
    """
    if not isinstance(manifest, dict):
        raise DecodeError(path, f"{path}: must be a manifest")
    decoder = _DECODERS.get(str(manifest.get("kind")))
    if decoder is None:
        return None
    try:
        policy = decoder(manifest)
        annotations = (manifest.get("metadata") or {}).get("annotations")
        return with_modes(policy, annotations)
    except DecodeError as error:
        raise DecodeError(f"{path}.{error.field}", error.detail) from None


def with_modes(policy: Policy, annotations: object) -> Policy:
    """Set what the annotations of a manifest say of enforcement; raises ``DecodeError``."""
    enforcement = decode_enforcement(annotations)
    if isinstance(policy, ResourceQuota):
        return dataclasses.replace(policy, enforcement=enforcement)
    in_api_server = decode_in_api_server(annotations)
    return dataclasses.replace(policy, enforcement=enforcement, in_api_server=in_api_server)


def only_namespace(manifests: Iterable[Any]) -> str:
    """Name the namespace that all policies share; ``default`` if they do not."""
    metadata = [m.get("metadata") for m in manifests if isinstance(m, dict) and is_policy(m)]
    namespaces = {each.get("namespace") for each in metadata if isinstance(each, dict)}
    namespace = namespaces.pop() if len(namespaces) == 1 else None
    return namespace if namespace and isinstance(namespace, str) else "default"


def _policies_of(kind: str, policies: Iterable[Policy]) -> tuple[Any, ...]:
    """Select the policies of one kind, in name order."""
    return tuple(sorted((p for p in policies if p.ref.kind == kind), key=lambda p: p.name))


def _decode_limited_list(entries: object) -> Any:
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise DecodeError("limitedResources", "limitedResources: must be a list")
    return decode_limited_resources(entries)


def is_cluster_scoped(kind: object) -> bool:
    """Whether objects of this kind are known to live outside namespaces."""
    return kind in tuple(_CLUSTER_SCOPED)


def kind_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Read group, version and kind of an object; for well-known kinds the group may be missing."""
    kind = obj.get("kind")
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    name = kind if isinstance(kind, str) else ""
    return {"group": group or _GROUP_OF.get(name, ""), "version": version or "v1", "kind": kind}


def resource_of(kind: object) -> dict[str, Any]:
    """Guess the resource of a kind as Kubernetes does: its plural in lower case."""
    shape = kind if isinstance(kind, dict) else {}
    singular = str(shape.get("kind") or "").lower()
    if singular.endswith("s"):
        plural = f"{singular}es"
    elif singular.endswith("y"):
        plural = f"{singular[:-1]}ies"
    else:
        plural = f"{singular}s" if singular else ""
    return {"group": shape.get("group"), "version": shape.get("version"), "resource": plural}
