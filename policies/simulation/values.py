"""Results of a simulation, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.policy import Authority, Enforcement

if TYPE_CHECKING:
    from engine.decision import Decision, Violation
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest
    from policies.simulation.costs import Cost, CostLine
    from policies.simulation.explain import ExplainedField


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A decision with what caused each change, and each quota before and after it.

    ``decision.object`` is the object as it would be stored; ``costs`` has every quota of the
    namespace, also where the object is refused: what it would have taken.
    """

    request: AdmissionRequest
    policies: PolicySet
    decision: Decision
    changes: tuple[ExplainedField, ...] = ()
    costs: tuple[Cost, ...] = ()

    @property
    def is_admitted(self) -> bool:
        """Whether the object would come to be, the API server's own plugins included."""
        return self.decision.allowed and not self.refused_natively

    @property
    def refused_natively(self) -> tuple[Violation, ...]:
        """What the portal leaves to the API server's plugins, and they would refuse."""
        if self.policies.authority is not Authority.NATIVE:
            return ()
        modes = {each.ref: each.enforcement for each in self.policies.limit_ranges}
        modes |= {each.ref: each.enforcement for each in self.policies.resource_quotas}
        enforced = {ref for ref, mode in modes.items() if mode is Enforcement.ENFORCE}
        return tuple(found for found in self.decision.observed if found.policy in enforced)

    @property
    def refusals(self) -> tuple[Violation, ...]:
        """All that stands against the object, whoever refuses."""
        return (*self.decision.violations, *self.refused_natively)

    @property
    def only_observed(self) -> tuple[Violation, ...]:
        """What policies that warn or audit found; it refuses nothing."""
        natively = self.refused_natively
        return tuple(found for found in self.decision.observed if found not in natively)

    @property
    def binding(self) -> CostLine | None:
        """The line of all quotas that leaves the least room for more of the same."""
        return next((line for cost in self.costs for line in cost.lines if line.is_binding), None)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        kind, number = self.request.kind.kind, len(self.changes)
        if self.decision.violations:
            return f"This {kind} would be refused: {_told(self.decision.violations)}."
        if self.refused_natively:
            reasons = _told(self.refused_natively)
            return f"This {kind} would be refused by the API server itself: {reasons}."
        charged = [cost.quota.name for cost in self.costs if cost.is_charged]
        changed = f", after {_counted(number, 'change')}" if number else " as it is"
        paid = f", and charged to {', '.join(charged)}" if charged else ""
        return f"This {kind} would be admitted{changed}{paid}."


def _told(found: tuple[Violation, ...]) -> str:
    first, *others = found
    by = f" ({first.policy.kind} {first.policy.name})" if first.policy else ""
    more = f", and {_counted(len(others), 'more reason')}" if others else ""
    return f"{first.message.rstrip('.')}{by}{more}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
