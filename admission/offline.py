"""Ask the chain without a server: cases, files of policies, and results as plain values.

Plain Python, no files and no database: the command reads and prints.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from admission.review import build_request
from policies.engine.chain import admit
from policies.engine.errors import DecodeError, invalid_message
from policies.engine.limit_range import decode_limit_range, validate_limit_range
from policies.engine.metadata_policy import decode_metadata_policy, validate_metadata_policy
from policies.engine.policy import PolicySet, decode_enforcement
from policies.engine.request import Operation, Phase
from policies.engine.resource_quota import (
    decode_limited_resources,
    decode_resource_quota,
    validate_resource_quota,
)
from policies.engine.wire import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from policies.engine.decision import Decision, Step, Violation
    from policies.engine.errors import FieldError
    from policies.engine.policy import LimitRange, MetadataPolicy, PolicyRef, ResourceQuota
    from policies.engine.request import AdmissionRequest

    Policy = LimitRange | MetadataPolicy | ResourceQuota

_DECODERS: Final[dict[str, Callable[[Mapping[str, Any]], Policy]]] = {
    "LimitRange": decode_limit_range,
    "MetadataPolicy": decode_metadata_policy,
    "ResourceQuota": decode_resource_quota,
}
_VALIDATORS: Final[dict[str, Callable[[Any], Sequence[FieldError]]]] = {
    "LimitRange": validate_limit_range,
    "MetadataPolicy": validate_metadata_policy,
    "ResourceQuota": validate_resource_quota,
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
    """Whether a manifest is one of the three kinds that decide."""
    return manifest.get("kind") in tuple(_DECODERS)


def build_policy_set(
    manifests: Sequence[Any], limited_resources: object = None, *, namespace: str = ""
) -> PolicySet:
    """Decode policies into what decides about one namespace; raises ``DecodeError``.

    Manifests of other kinds and of other namespaces are left out; one that names no namespace
    is of this one. Errors are fields of ``policies[i]`` and ``limitedResources``.
    """
    policies = [
        policy
        for index, manifest in enumerate(manifests)
        if (policy := _decode(manifest, f"policies[{index}]")) is not None
        and policy.namespace in ("", namespace)
    ]
    placed = [dataclasses.replace(policy, namespace=namespace) for policy in policies]
    return PolicySet(
        namespace=namespace,
        limit_ranges=_of_kind("LimitRange", placed),
        metadata_policies=_of_kind("MetadataPolicy", placed),
        resource_quotas=_of_kind("ResourceQuota", placed),
        limited_resources=_decode_limited(limited_resources),
    )


def _decode(manifest: object, path: str) -> Policy | None:
    if not isinstance(manifest, dict):
        raise DecodeError(path, f"{path}: must be a manifest")
    decoder = _DECODERS.get(str(manifest.get("kind")))
    if decoder is None:
        return None
    try:
        policy = decoder(manifest)
        annotations = (manifest.get("metadata") or {}).get("annotations")
        return dataclasses.replace(policy, enforcement=decode_enforcement(annotations))
    except DecodeError as error:
        raise DecodeError(f"{path}.{error.field}", error.detail) from None


def only_namespace(manifests: Iterable[Any]) -> str:
    """Name the namespace that all policies share; ``default`` if they do not."""
    metadata = [m.get("metadata") for m in manifests if isinstance(m, dict) and is_policy(m)]
    found = {m.get("namespace") for m in metadata if isinstance(m, dict)}
    name = found.pop() if len(found) == 1 else None
    return name if name and isinstance(name, str) else "default"


def check_policies(manifests: Sequence[Any]) -> None:
    """Refuse policies that Kubernetes would not store; raises ``DecodeError`` with all findings."""
    for index, manifest in enumerate(manifests):
        policy = _decode(manifest, f"policies[{index}]")
        errors = _VALIDATORS[policy.ref.kind](policy) if policy is not None else ()
        if policy is not None and errors:
            message = invalid_message(policy.ref.kind, policy.name, errors)
            raise DecodeError(f"policies[{index}].{errors[0].field}", message)


def _of_kind(kind: str, policies: Iterable[Policy]) -> tuple[Any, ...]:
    """Policies of one kind in name order."""
    return tuple(sorted((p for p in policies if p.ref.kind == kind), key=lambda p: p.name))


def _decode_limited(entries: object) -> Any:
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise DecodeError("limitedResources", "limitedResources: must be a list")
    return decode_limited_resources(entries)


def request_for(
    obj: Mapping[str, Any], *, namespace: str = "", operation: Operation = Operation.CREATE
) -> AdmissionRequest:
    """Make the request that an API server would send for a manifest; raises ``DecodeError``."""
    return complete_request({"object": obj, "operation": operation.value, "namespace": namespace})


def complete_request(
    raw: Mapping[str, Any], *, default_namespace: str = "default"
) -> AdmissionRequest:
    """Read a request whose kind, resource, namespace and operation the object may have to tell.

    Kinds known to live outside namespaces get none. Raises ``DecodeError``.
    """
    known = raw.get("object")
    obj: Mapping[str, Any] = known if isinstance(known, dict) else {}
    found = obj.get("metadata")
    metadata: Mapping[str, Any] = found if isinstance(found, dict) else {}
    kind = raw.get("kind") or _kind_of(obj)
    if isinstance(kind, dict) and kind.get("kind") in tuple(_CLUSTER_SCOPED):
        default_namespace = ""
    filled = {
        **raw,
        "kind": kind,
        "resource": raw.get("resource") or _resource_of(kind),
        "operation": raw.get("operation") or Operation.CREATE.value,
        "namespace": raw.get("namespace") or metadata.get("namespace") or default_namespace,
        "name": raw.get("name") or metadata.get("name"),
    }
    return build_request(filled)


def _kind_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    kind = obj.get("kind")
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    name = kind if isinstance(kind, str) else ""
    return {"group": group or _GROUP_OF.get(name, ""), "version": version or "v1", "kind": kind}


def _resource_of(kind: object) -> dict[str, Any]:
    """Guess the resource as Kubernetes does for kinds that do not say: plural and lower case."""
    shape = kind if isinstance(kind, dict) else {}
    name = str(shape.get("kind") or "").lower()
    if name.endswith("s"):
        plural = f"{name}es"
    elif name.endswith("y"):
        plural = f"{name[:-1]}ies"
    else:
        plural = f"{name}s" if name else ""
    return {"group": shape.get("group"), "version": shape.get("version"), "resource": plural}


def answer_line(line: str | bytes, limited_resources: object = None) -> dict[str, Any]:
    """Answer one case, written as JSON; an unreadable one is answered by its error."""
    try:
        case = loads(line)
    except DecodeError as error:
        return _error(None, error)
    return answer_case(case, limited_resources)


def answer_case(case: object, limited_resources: object = None) -> dict[str, Any]:
    """Answer one case; never raises, whatever its shape."""
    if not isinstance(case, dict):
        return _error(None, DecodeError("", "a case is an object"))
    name = case.get("name")
    try:
        request, policies, phase = read_case(case, limited_resources)
    except DecodeError as error:
        return _error(name, error)
    decision = admit(request, policies, phase=phase, now=_now_of(case))
    return {"name": name, **render_decision(decision)}


def _now_of(case: Mapping[str, Any]) -> str | None:
    now = case.get("now")
    return now if isinstance(now, str) else None


def read_case(
    case: Mapping[str, Any], limited_resources: object = None
) -> tuple[AdmissionRequest, PolicySet, Phase]:
    """Read request, policies and phase of a case; raises ``DecodeError`` with the field."""
    raw, manifests = case.get("request"), case.get("policies")
    if not isinstance(raw, dict):
        raise DecodeError("request", "request: must be an object")
    if not isinstance(manifests, list | None):
        raise DecodeError("policies", "policies: must be a list")
    phase = case.get("phase") or Phase.BOTH.value
    if phase not in tuple(Phase):
        raise DecodeError("phase", "phase: must be mutate, validate or both")
    try:
        request = complete_request(raw)
    except DecodeError as error:
        raise DecodeError(f"request.{error.field}", error.detail) from None
    given = case.get("limitedResources")
    limited = limited_resources if given is None else given
    policies = build_policy_set(manifests or [], limited, namespace=request.namespace)
    return request, policies, Phase(phase)


def _error(name: object, error: DecodeError) -> dict[str, Any]:
    return {"name": name, "error": {"field": error.field, "message": error.detail}}


def render_decision(decision: Decision) -> dict[str, Any]:
    """Give the result of a case as a JSON-shaped value."""
    return {
        "allowed": decision.allowed,
        "code": decision.code,
        "reason": decision.reason,
        "message": decision.message,
        "violations": [render_violation(found) for found in decision.violations],
        "patch": [operation.to_json() for operation in decision.patch],
        "object": decision.object,
        "warnings": list(decision.warnings),
        "used": {
            quota: {name: str(amount) for name, amount in used.items()}
            for quota, used in decision.used.items()
        },
    }


def render_violation(violation: Violation) -> dict[str, Any]:
    """Give one violation as a JSON-shaped value."""
    return {
        "reason": violation.reason.value,
        "field": violation.field,
        "message": violation.message,
        "policy": _policy(violation.policy),
        "rule": violation.rule,
    }


def _policy(ref: PolicyRef | None) -> dict[str, str] | None:
    return None if ref is None else {"kind": ref.kind, "name": ref.name}


def render_step(step: Step) -> dict[str, Any]:
    """Give one entry of the trace as a JSON-shaped value, without what is empty."""
    shape = {
        "step": step.name,
        "outcome": step.outcome.value,
        "policy": _policy(step.policy),
        "rule": step.rule,
        "detail": step.detail,
        "numbers": dict(step.numbers),
    }
    return {key: value for key, value in shape.items() if value not in (None, "", {})}
