"""Decide without a server: cases, requests and manifests in, rendered decisions out.

Plain Python without files or database: the command reads and prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from admission.wire.review import build_request
from engine.chain import admit
from engine.decision_json import render_decision
from engine.errors import DecodeError
from engine.policy_manifests import (
    build_policy_set,
    check_policies,
    is_cluster_scoped,
    is_policy,
    kind_of,
    resource_of,
)
from engine.request import Operation, Phase
from engine.wire import loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.policy import PolicySet
    from engine.request import AdmissionRequest

__all__ = [
    "answer_case",
    "answer_line",
    "build_policy_set",
    "check_policies",
    "complete_request",
    "is_policy",
    "only_namespace",
    "read_case",
    "request_for",
]


def only_namespace(manifests: Iterable[Any]) -> str:
    """Name the namespace that all policies share; ``default`` if they do not."""
    metadata = [m.get("metadata") for m in manifests if isinstance(m, dict) and is_policy(m)]
    namespaces = {each.get("namespace") for each in metadata if isinstance(each, dict)}
    namespace = namespaces.pop() if len(namespaces) == 1 else None
    return namespace if namespace and isinstance(namespace, str) else "default"


def request_for(
    obj: Mapping[str, Any], *, namespace: str = "", operation: Operation = Operation.CREATE
) -> AdmissionRequest:
    """Make the request that an API server would send for a manifest; raises ``DecodeError``."""
    return complete_request({"object": obj, "operation": operation.value, "namespace": namespace})


def complete_request(
    raw: Mapping[str, Any], *, default_namespace: str = "default"
) -> AdmissionRequest:
    """Read a request; kind, resource, namespace and name may come from its object.

    Kinds known to live outside namespaces get none. Raises ``DecodeError``.
    """
    given_object = raw.get("object")
    obj: Mapping[str, Any] = given_object if isinstance(given_object, dict) else {}
    given_metadata = obj.get("metadata")
    metadata: Mapping[str, Any] = given_metadata if isinstance(given_metadata, dict) else {}
    kind = raw.get("kind") or kind_of(obj)
    if isinstance(kind, dict) and is_cluster_scoped(kind.get("kind")):
        default_namespace = ""
    completed = {
        **raw,
        "kind": kind,
        "resource": raw.get("resource") or resource_of(kind),
        "operation": raw.get("operation") or Operation.CREATE.value,
        "namespace": raw.get("namespace") or metadata.get("namespace") or default_namespace,
        "name": raw.get("name") or metadata.get("name"),
    }
    return build_request(completed)


def answer_line(line: str | bytes, limited_resources: object = None) -> dict[str, Any]:
    """Answer one case, a line of JSON; the answer to an unreadable one is its error."""
    try:
        case = loads(line)
    except DecodeError as error:
        return _case_error(None, error)
    return answer_case(case, limited_resources)


def answer_case(case: object, limited_resources: object = None) -> dict[str, Any]:
    """Answer one case; never raises, whatever its shape."""
    if not isinstance(case, dict):
        return _case_error(None, DecodeError("", "a case is an object"))
    case_name = case.get("name")
    try:
        request, policies, phase = read_case(case, limited_resources)
    except DecodeError as error:
        return _case_error(case_name, error)
    now = case.get("now")
    decision = admit(request, policies, phase=phase, now=now if isinstance(now, str) else None)
    return {"name": case_name, **render_decision(decision)}


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
    case_limited = case.get("limitedResources")
    limited = limited_resources if case_limited is None else case_limited
    policies = build_policy_set(manifests or [], limited, namespace=request.namespace)
    return request, policies, Phase(phase)


def _case_error(case_name: object, error: DecodeError) -> dict[str, Any]:
    return {"name": case_name, "error": {"field": error.field, "message": error.detail}}
