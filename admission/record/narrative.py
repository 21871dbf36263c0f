"""Decisions in words: "asked to create", "was refused", "charged to"; a few for a list's line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.bounds import shortened
from engine.policy import Authority

if TYPE_CHECKING:
    from admission.models import AuditEvent

LONGEST: Final = 2048
"""Bytes of a message."""
_VERBS: Final = {
    "CREATE": "create",
    "UPDATE": "change",
    "DELETE": "delete",
    "CONNECT": "connect to",
}


def sentence(event: AuditEvent) -> str:
    """One sentence: who requested what and where, and the verdict."""
    if event.operation:
        verb = _VERBS.get(event.operation, event.operation.lower())
        kind = event.kind or event.resource
        part = f" ({event.sub_resource})" if event.sub_resource else ""
        place = f" in namespace {event.namespace}" if event.namespace else ""
        request = f"asked to {verb} {kind}{part} {event.name}{place} of cluster {event.cluster}"
        narrated = f"{event.user or 'Somebody'} {request} and {_outcome(event)}"
    else:
        who = f"The API server of {event.cluster}"
        narrated = f"{who} sent a review that could not be read and {_outcome(event)}"
    return f"{narrated} (a dry run: nothing was charged)." if event.dry_run else f"{narrated}."


def summary(event: AuditEvent) -> str:
    """The outcome in a few words."""
    if not event.allowed:
        return _why(event)
    if event.authority == Authority.NATIVE and event.warnings:
        return str(event.warnings[0])
    if event.patch:
        return f"{_number_of(len(event.patch), 'change')} to the object"
    return _number_of(len(event.warnings), "warning") if event.warnings else ""


def _outcome(event: AuditEvent) -> str:
    if not event.allowed:
        return f"was refused: {_why(event)}"
    if event.authority == Authority.NATIVE and event.observed:
        reasons = _reasons(event.observed, event.more_observed)
        return f"was left to the API server, which enforces here: {reasons}"
    if event.patch:
        changes = _number_of(len(event.patch), "change")
        return f"was allowed, after {changes} to the object"
    charged_quotas = [charge["quota"]["name"] for charge in event.charges]
    if charged_quotas and event.phase == "validate" and not event.dry_run:
        return f"was allowed, charged to {', '.join(charged_quotas)}"
    return "was allowed as it is"


def _why(event: AuditEvent) -> str:
    if not event.violations:
        return event.message or event.reason
    return _reasons(event.violations, event.more_violations)


def _reasons(found: list[dict[str, Any]], more: int) -> str:
    """The first reason with its policy, and the number of others."""
    first, policy, others = found[0]["message"], found[0]["policy"], len(found) - 1 + more
    by = f" ({policy['kind']} {policy['name']})" if policy else ""
    narrated = f"{shortened(first, LONGEST)}{by}"
    return f"{narrated}, and {_number_of(others, 'more reason')}" if others else narrated


def _number_of(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
