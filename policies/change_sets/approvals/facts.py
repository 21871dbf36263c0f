"""ChangeFacts: what rules of approval ask of a change, object by object and as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policies.change_sets.approvals.checks import CheckKind, CheckResult

Place = tuple[str, str]
"""A cluster and a namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFact:
    """One object of a change, and what publishing does to it."""

    kind: str
    cluster: str
    namespace: str
    name: str
    deletes: bool = False
    enforces: bool = False
    """Whether it is turned to enforce: a new one, or one that only warned or audited."""
    below_used: bool = False
    """Whether a hard value would be less than what is used."""

    @property
    def place(self) -> Place:
        """Where it lies."""
        return self.cluster, self.namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFacts:
    """A change: its objects, and the checks of its present content."""

    objects: tuple[ObjectFact, ...] = ()
    checks: tuple[CheckResult, ...] = ()

    def check(self, kind: CheckKind) -> CheckResult | None:
        """A check, if somebody has asked for it."""
        return next((each for each in self.checks if each.kind is kind), None)

    def number(self, kind: CheckKind) -> int | None:
        """What a check that is over has counted; None while it is not known."""
        found = self.check(kind)
        return found.number if found is not None and found.is_counted else None

    @property
    def in_many_clusters(self) -> bool:
        """Whether a namespace alone does not say where an object lies."""
        return len({each.cluster for each in self.objects}) > 1
