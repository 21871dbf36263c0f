"""Decide cases without a server: a line of JSON in, its rendered decision out.

Plain Python without files or database: the command reads and prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.chain import admit
from engine.decision_json import render_decision
from engine.errors import DecodeError
from engine.kubernetes_version import (
    DEFAULT_VERSION,
    UNKNOWN_TEXT,
    KubernetesVersion,
    parse_version,
)
from engine.policy_manifests import build_policy_set
from engine.request import Phase
from engine.request_json import complete_request
from engine.wire import loads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.policy import PolicySet
    from engine.request import AdmissionRequest


def answer_line(
    line: str | bytes,
    limited_resources: object = None,
    version: KubernetesVersion = DEFAULT_VERSION,
) -> dict[str, Any]:
    """Answer one case, a line of JSON; the answer to an unreadable one is its error.

    ``limited_resources`` and ``version`` hold for cases that state none.
    """
    try:
        case = loads(line)
    except DecodeError as error:
        return _case_error(None, error)
    return answer_case(case, limited_resources, version)


def answer_case(
    case: object, limited_resources: object = None, version: KubernetesVersion = DEFAULT_VERSION
) -> dict[str, Any]:
    """Answer one case; never raises, whatever its shape."""
    if not isinstance(case, dict):
        return _case_error(None, DecodeError("", "a case is an object"))
    case_name = case.get("name")
    try:
        request, policies, phase = read_case(case, limited_resources, version)
    except DecodeError as error:
        return _case_error(case_name, error)
    now = case.get("now")
    decision = admit(request, policies, phase=phase, now=now if isinstance(now, str) else None)
    return {"name": case_name, **render_decision(decision)}


def read_case(
    case: Mapping[str, Any],
    limited_resources: object = None,
    version: KubernetesVersion = DEFAULT_VERSION,
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
    policies = build_policy_set(
        manifests or [],
        limited,
        namespace=request.namespace,
        version=_version_of(case.get("kubernetesVersion"), version),
    )
    return request, policies, Phase(phase)


def _version_of(stated: object, version: KubernetesVersion) -> KubernetesVersion:
    if stated is None:
        return version
    # A number has lost what distinguishes 1.4 from 1.40.
    if type(stated) is not str:
        raise DecodeError("kubernetesVersion", f"kubernetesVersion: {UNKNOWN_TEXT}, as a text")
    try:
        return parse_version(stated)
    except ValueError as error:
        raise DecodeError("kubernetesVersion", f"kubernetesVersion: {error}") from None


def _case_error(case_name: object, error: DecodeError) -> dict[str, Any]:
    return {"name": case_name, "error": {"field": error.field, "message": error.detail}}
