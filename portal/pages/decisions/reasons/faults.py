"""WordedFault, a violation in words with the amount without room; who decided, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.decision import Reason
from portal.pages.decisions.reasons.amounts import Amount, exceeded_amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from admission.models import AuditEvent


@dataclass(frozen=True, slots=True)
class WordedFault:
    """One violation in words, with the amount of the quota that had no room."""

    words: str
    amount: Amount | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """A sentence about the policy that decided; ``name`` is empty where none did."""

    before: str
    name: str = ""
    after: str = ""

    def __str__(self) -> str:
        return f"{self.before}{self.name}{self.after}"


def headline(event: AuditEvent) -> Headline:
    """Who decided, in one sentence."""
    kind = event.kind or "review"
    found = event.observed if event.allowed else event.violations
    policy = (found[0].get("policy") or {}) if found else {}
    if not policy:
        if event.allowed and event.patch:
            return Headline(f"The {kind} was changed.")
        return Headline(f"The {kind} was {'allowed as it is' if event.allowed else 'denied'}.")
    if event.allowed:
        return Headline(f"{policy['kind']} ", policy["name"], f" would refuse this {kind}.")
    if found[0].get("reason") == Reason.EXCEEDED_QUOTA:
        place = f" in {policy['namespace']}" if policy.get("namespace") else ""
        return Headline("Quota ", policy["name"], f"{place} has no room for this {kind}.")
    return Headline(f"{policy['kind']} ", policy["name"], f" refuses this {kind}.")


def faults_of(found: Iterable[Mapping[str, Any]]) -> list[WordedFault]:
    """Violations in words; those of quotas by resource, where Kubernetes repeats one message."""
    faults = {}
    for violation in found:
        amount = exceeded_amount(violation)
        words = str(violation.get("message", ""))
        if amount:
            room = f"{amount.used} used + {amount.requested} requested"
            words = f"{amount.resource}: {room}, the limit is {amount.hard}"
        faults[words] = WordedFault(words, amount)
    return list(faults.values())
