"""A ``Decision``, ``Violation``, ``Step`` as JSON-shaped values, for commands, API and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.decision import Decision, Step, Violation
    from engine.policy import PolicyRef


def render_decision(decision: Decision) -> dict[str, Any]:
    """The verdict, its violations, patch, warnings and used amounts, and the object."""
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
    """The reason, field, message and policy of one violation."""
    return {
        "reason": violation.reason.value,
        "field": violation.field,
        "message": violation.message,
        "policy": render_ref(violation.policy),
        "rule": violation.rule,
    }


def render_ref(ref: PolicyRef | None) -> dict[str, str] | None:
    """The kind and name of a policy."""
    return None if ref is None else {"kind": ref.kind, "name": ref.name}


def render_step(step: Step) -> dict[str, Any]:
    """One entry of the trace, without what is empty."""
    rendered_step = {
        "step": step.name,
        "outcome": step.outcome.value,
        "policy": render_ref(step.policy),
        "rule": step.rule,
        "detail": step.detail,
        "numbers": dict(step.numbers),
    }
    return {part: text for part, text in rendered_step.items() if text not in (None, "", {})}
