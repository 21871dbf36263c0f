"""``redecide``: a decision on record asked again as of any instant, and how the answers differ.

Judged as a replay judges: the same reading of the stored request, the same engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from admission.record.redaction import restore
from admission.replay.judge import ALWAYS_SET, decided
from admission.replay.policies import read_annotations, without_amounts
from admission.replay.recorded import PastDecision, Unreplayed, read_stored
from engine.errors import DecodeError
from engine.request import Operation, Phase
from engine.request_json import build_request
from engine.wire import dumps
from policies import history

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from admission.models import AuditEvent
    from engine.decision import Decision

_WORDS = {
    Unreplayed.CUT: "The object was too large to be recorded whole.",
    Unreplayed.REDACTED: "A long text that a policy reads was not recorded.",
    Unreplayed.KIND_NOT_KEPT: "Only the metadata of this object is on record.",
    Unreplayed.UNREADABLE: "The recorded object cannot be read.",
    Unreplayed.NOT_JUDGED: "It was answered before any policy was asked.",
    Unreplayed.POLICIES_UNREADABLE: "A policy of this instant cannot be read any more.",
}


class DifferenceKind(StrEnum):
    """In what an answer differs from the recorded one."""

    VERDICT = "verdict"
    NEW_REASON = "new_reason"
    VANISHED_REASON = "vanished_reason"
    PATCH = "patch"
    NEW_WARNING = "new_warning"
    VANISHED_WARNING = "vanished_warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedecidedDifference:
    """One difference in words; ``reason`` and ``policy`` are empty where none led to it."""

    kind: DifferenceKind
    words: str
    reason: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redecision:
    """The answer of an instant; None with the ``obstacle`` where the record tells too little.

    Without ``knows_usage`` no quota is full: the journal of the ledger does not reach the instant.
    """

    knows_usage: bool
    decision: Decision | None = None
    obstacle: Unreplayed | None = None
    differences: Sequence[RedecidedDifference] = ()

    @property
    def problem(self) -> str:
        """The obstacle in words; empty without one."""
        return _WORDS[self.obstacle] if self.obstacle else ""


def redecide(event: AuditEvent, instant: dt.datetime) -> Redecision:
    """Judge a decision by the policies and used amounts of an instant; raises ``InstantError``.

    What the object itself was charged is left out where it was created: it is asked for anew.
    """
    known = history.horizon(event.cluster)
    history.require_known("policies", known.policies, instant)
    knows_usage = known.knows_usage(instant)
    own = event.object_uid if event.operation == Operation.CREATE else ""
    try:
        policies = history.load_at(
            event.cluster, event.namespace, instant, with_usage=knows_usage, without=own
        )
    except DecodeError:
        return Redecision(knows_usage=knows_usage, obstacle=Unreplayed.POLICIES_UNREADABLE)
    if not knows_usage:
        policies = without_amounts(policies)
    keys = read_annotations(policies) | (ALWAYS_SET if event.phase == Phase.MUTATE else frozenset())
    stored = read_stored(PastDecision.of(event), keys)
    if isinstance(stored, Unreplayed):
        return Redecision(knows_usage=knows_usage, obstacle=stored)
    try:
        request = build_request(restore(stored))
    except DecodeError:
        return Redecision(knows_usage=knows_usage, obstacle=Unreplayed.UNREADABLE)
    decision = decided(request, policies, phase=event.phase, now=int(instant.timestamp()))
    return Redecision(
        knows_usage=knows_usage,
        decision=decision,
        differences=tuple(_differences(event, decision)),
    )


def _differences(event: AuditEvent, decision: Decision) -> Iterator[RedecidedDifference]:
    if decision.allowed != event.allowed:
        recorded, then = (
            "allowed" if each else "denied" for each in (event.allowed, decision.allowed)
        )
        words = f"{recorded} on record, {then} as of the instant"
        yield RedecidedDifference(kind=DifferenceKind.VERDICT, words=words)
    yield from _reasons(event, decision)
    # A refusal has no patch to compare.
    if decision.allowed and event.allowed:
        yield from _patches(event.patch, [each.to_json() for each in decision.patch])
    yield from _warnings(event.warnings, decision.warnings)


def _reasons(event: AuditEvent, decision: Decision) -> Iterator[RedecidedDifference]:
    before = {
        (each["reason"], _policy_name(each.get("policy"))): str(each.get("message", ""))
        for each in (*event.violations, *event.observed)
    }
    after = {
        (each.reason.value, f"{each.policy.kind} {each.policy.name}" if each.policy else ""):
        each.message
        for each in (*decision.violations, *decision.observed)
    }  # fmt: skip
    for kind, having, without in (
        (DifferenceKind.VANISHED_REASON, before, after),
        (DifferenceKind.NEW_REASON, after, before),
    ):
        for (reason, policy), message in having.items():
            if (reason, policy) not in without:
                yield RedecidedDifference(kind=kind, words=message, reason=reason, policy=policy)


def _policy_name(ref: Mapping[str, Any] | None) -> str:
    return f"{ref['kind']} {ref['name']}" if ref else ""


def _patches(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
) -> Iterator[RedecidedDifference]:
    old, new = ({_operation(each) for each in patch} for patch in (before, after))
    for sign, operations in (("no longer", old - new), ("now", new - old)):
        for operation in sorted(operations):
            yield RedecidedDifference(kind=DifferenceKind.PATCH, words=f"{sign} {operation}")


def _operation(patch_operation: Mapping[str, Any]) -> str:
    word, path = patch_operation.get("op"), patch_operation.get("path")
    value = patch_operation.get("value")
    return f"{word} {path}" if value is None else f"{word} {path}: {dumps(value)}"


def _warnings(before: Sequence[str], after: Sequence[str]) -> Iterator[RedecidedDifference]:
    for kind, having, without in (
        (DifferenceKind.VANISHED_WARNING, before, after),
        (DifferenceKind.NEW_WARNING, after, before),
    ):
        for text in having:
            if text not in without:
                yield RedecidedDifference(kind=kind, words=text)
