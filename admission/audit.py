"""The only writer of AuditEvent: one decision becomes one row. No rule and no HTTP here."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from admission.models import AuditEvent, Verdict
from admission.redaction import clip, escape, redacted_request, storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policies.engine.decision import Charge, Decision, Step, Violation
    from policies.engine.policy import PolicyRef
    from policies.engine.request import AdmissionRequest, Phase

_CROCKFORD: Final = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What belongs on record beside request and decision.

    ``started`` is a ``time.monotonic_ns()``; ``request_uid`` names a request that could not be
    read; ``policies`` are those that were asked.
    """

    cluster: str
    phase: Phase
    client: str
    started: int
    request_uid: str = ""
    policy_revision: int = 0
    policies: tuple[PolicyRef, ...] = ()


def new_decision_id() -> str:
    """16 characters of Crockford's base32: 48 bit of milliseconds, 32 random. Sorts by time."""
    return _encoded(time.time_ns() // 1_000_000, secrets.randbits(32))


def _encoded(milliseconds: int, random: int) -> str:
    value = milliseconds << 32 | random
    return "".join(_CROCKFORD[value >> shift & 31] for shift in range(75, -1, -5))


def record(
    decision: Decision,
    *,
    decision_id: str,
    request: AdmissionRequest | None,
    circumstances: Circumstances,
) -> AuditEvent:
    """Write one row inside the caller's transaction.

    Raises:
        DatabaseError: if it cannot be written; then there must be no answer either.
    """
    event = AuditEvent(
        id=decision_id,
        created=datetime.now(UTC),
        cluster=clip(circumstances.cluster),
        phase=circumstances.phase.value,
        request_uid=clip(request.uid if request else circumstances.request_uid),
        client=clip(circumstances.client),
        policy_revision=circumstances.policy_revision,
        **_asked(request),
        **_answered(decision),
        **_policies(decision, circumstances.policies),
        duration_us=(time.monotonic_ns() - circumstances.started) // 1000,
    )
    event.save()
    return event


def _asked(request: AdmissionRequest | None) -> dict[str, Any]:
    if request is None:
        return {}
    metadata = _metadata(request)
    uid = metadata.get("uid")
    return {
        "operation": request.operation.value,
        "api_group": clip(request.kind.group),
        "kind": clip(request.kind.kind),
        "resource": clip(request.resource.resource),
        "sub_resource": clip(request.sub_resource),
        "namespace": clip(request.namespace),
        "name": clip(request.display_name),
        "object_uid": clip(uid) if isinstance(uid, str) else "",
        "user": clip(request.user),
        "groups": [clip(group) for group in request.groups],
        "dry_run": request.dry_run,
        "request": redacted_request(request),
    }


def _metadata(request: AdmissionRequest) -> Mapping[str, Any]:
    metadata = (request.object or request.old_object or {}).get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _answered(decision: Decision) -> dict[str, Any]:
    found = (*decision.violations, *decision.observed)
    reasons = dict.fromkeys(v.reason.value for v in found)
    return {
        "verdict": _verdict(decision),
        "code": decision.code,
        "reason": clip(decision.reason, 64),
        "message": escape(decision.message),
        "reasons": _words(reasons),
        "violations": [_violation(v) for v in decision.violations],
        "observed": [_violation(v) for v in decision.observed],
        "trace": [_step(step) for step in decision.trace],
        "patch": storable([operation.to_json() for operation in decision.patch]),
        "warnings": storable(list(decision.warnings)),
        "charges": [_charge(charge) for charge in decision.charges],
    }


def _verdict(decision: Decision) -> Verdict:
    if not decision.allowed:
        return Verdict.DENIED
    return Verdict.MUTATED if decision.patch else Verdict.ALLOWED


def _policies(decision: Decision, asked: Iterable[PolicyRef]) -> dict[str, Any]:
    found: list[Step | Violation] = [*decision.trace, *decision.violations, *decision.observed]
    refs = dict.fromkeys((*asked, *(entry.policy for entry in found if entry.policy)))
    return {
        "policies": [_policy(ref) for ref in refs],
        "policy_names": _words(f"{r.kind}/{r.namespace}/{r.name}" for r in refs),
    }


def _words(texts: Iterable[str]) -> str:
    joined = " ".join(texts)
    return f" {escape(joined)} " if joined else ""


def _policy(ref: PolicyRef) -> dict[str, Any]:
    return {
        "kind": ref.kind,
        "namespace": escape(ref.namespace),
        "name": escape(ref.name),
        "revision": ref.revision,
    }


def _violation(violation: Violation) -> dict[str, Any]:
    return {
        "reason": violation.reason.value,
        "field": escape(violation.field),
        "message": escape(violation.message),
        "policy": _policy(violation.policy) if violation.policy else None,
        "rule": violation.rule,
        "numbers": storable(dict(violation.numbers)),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "name": step.name,
        "outcome": step.outcome.value,
        "policy": _policy(step.policy) if step.policy else None,
        "rule": step.rule,
        "detail": escape(step.detail),
        "numbers": storable(dict(step.numbers)),
    }


def _charge(charge: Charge) -> dict[str, Any]:
    return {
        "quota": _policy(charge.quota),
        "delta": {escape(name): str(amount) for name, amount in charge.delta.items()},
        "amounts": {escape(name): str(amount) for name, amount in charge.amounts.items()},
    }
