"""RuleTerms: when a rule of approval takes effect, and what it asks for then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from policies.change_sets.approvals.facts import ObjectFact

ANY_MORE: Final = "*"
"""At the end of a namespace's name: all namespaces that begin so."""
APPROVING_ROLES: Final = ("editor", "approver", "admin")
"""The roles that rules may ask for; whoever is admin of a place has all of them there."""
MOST_APPROVERS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTerms:
    """One rule: where it looks, for what, and what it asks for.

    Empty ``kinds``, ``clusters`` or ``namespaces`` are all. Of the causes, ``deletes`` to
    ``red_tests_over``, any one is enough; a rule without a cause takes effect wherever it looks.
    """

    name: str
    kinds: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    deletes: bool = False
    enforces: bool = False
    below_used: bool = False
    flips_over: int | None = None
    restarts_over: int | None = None
    namespaces_over: int | None = None
    red_tests_over: int | None = None
    approvers: int = 1
    role: str = "approver"
    for_each_namespace: bool = True
    checks_green: bool = False

    def selects(self, fact: ObjectFact) -> bool:
        """Whether the rule looks at an object."""
        return (
            (not self.kinds or fact.kind in self.kinds)
            and (not self.clusters or fact.cluster in self.clusters)
            and (not self.namespaces or any(_fits(fact.namespace, one) for one in self.namespaces))
        )

    @property
    def has_cause(self) -> bool:
        """Whether the rule waits for something to happen."""
        numbers = (
            self.flips_over,
            self.restarts_over,
            self.namespaces_over,
            self.red_tests_over,
        )
        counts = any(number is not None for number in numbers)
        return self.deletes or self.enforces or self.below_used or counts


def _fits(namespace: str, pattern: str) -> bool:
    if pattern.endswith(ANY_MORE):
        return namespace.startswith(pattern.removesuffix(ANY_MORE))
    return namespace == pattern
