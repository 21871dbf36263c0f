"""QuotaLine: a quota that the reader sees, its levels and refused demand; which need attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from admission.models import AuditEvent
from admission.record.demand import demand_by_quota, waiting_owners
from engine.resource_quota import scope_requirements
from policies import roles, snapshot
from policies.ledger.usage import PRIORITY, Level, counts_class
from policies.snapshot.quota_levels import visible_placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from admission.models import AuditEventQuerySet
    from admission.record.demand import RefusedDemand, WaitingOwner
    from policies.snapshot.quota_levels import PlacedQuota

FULL: Final = 100
_CLASS_WORDS: Final = {"Exists": "any class", "DoesNotExist": "no class"}


@dataclass(frozen=True)
class QuotaLine:
    """One quota; ``resource`` is the one to show, or empty for the fullest."""

    placed: PlacedQuota
    demand: RefusedDemand | None = None
    resource: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """Cluster, namespace and name."""
        return self.placed.cluster, self.placed.namespace, self.placed.quota.name

    @property
    def key(self) -> str:
        """The same as one text, for addresses."""
        return "/".join(self.place)

    @cached_property
    def level(self) -> Level:
        """The level to show: of the named resource, of one that refuses somebody, the fullest."""
        wanted = (
            {self.resource} if self.resource else set(self.demand.amounts if self.demand else ())
        )
        among = [each for each in self.placed.levels if each.resource in wanted]
        return max(among or self.placed.levels, key=fullness)

    @property
    def is_blocked(self) -> bool:
        """Whether its limit is 0, so that it lets nothing in."""
        return self.level.look == "blocked"

    @property
    def look(self) -> str:
        """The colour of the bar: full, near, or empty."""
        if self.level.percent is None or self.is_blocked:
            return ""
        return "full" if self.level.percent >= FULL else "near" if self.level.look == "near" else ""

    @property
    def drawn(self) -> int:
        """How much of the bar is used, in percent of it."""
        return 0 if self.is_blocked else min(self.level.percent or 0, FULL)

    @property
    def refused(self) -> int:
        """How much of the bar is demand that was refused, as far as there is room for it."""
        wanted = self.demand.amounts.get(self.level.resource) if self.demand else None
        if wanted is None or self.level.hard.nano <= 0:
            return 0
        return min(FULL - self.drawn, max(1, 100 * wanted.nano // self.level.hard.nano))

    @property
    def words(self) -> str:
        """The percentage, or what stands for it."""
        if self.level.percent is None:
            return "not known"
        return "limit 0" if self.is_blocked else f"{self.level.percent:,}\N{NO-BREAK SPACE}%"

    @property
    def is_denying(self) -> bool:
        """Whether somebody waits for it."""
        return self.demand is not None

    @property
    def needs_attention(self) -> bool:
        """Whether a resource is near its limit or over it, blocked, or somebody waits for it."""
        return self.is_denying or any(level.needs_attention for level in self.placed.levels)

    @property
    def rank(self) -> tuple[int, bool, bool]:
        """A sort key; higher is fuller."""
        percent, _ = fullness(self.level)
        return percent, not self.is_blocked, self.is_denying

    @cached_property
    def classes(self) -> Sequence[str]:
        """The priority classes whose pods it counts, in words; empty for all."""
        found: list[str] = []
        for each in scope_requirements(self.placed.quota):
            if each.scope_name == PRIORITY:
                word = _CLASS_WORDS.get(each.operator)
                negation = "not " if each.operator == "NotIn" else ""
                found += [word] if word else [f"{negation}{value}" for value in each.values]
        return found

    @property
    def class_words(self) -> str:
        """The same for a cell: "all classes", "batch", "2 classes"."""
        if len(self.classes) > 1:
            return f"{len(self.classes)} classes"
        return self.classes[0] if self.classes else "all classes"

    @property
    def by_resource(self) -> list[QuotaLine]:
        """The same quota for each of its resources, fullest first."""
        return fullest_first(replace(self, resource=each.resource) for each in self.placed.levels)

    def counts(self, priority_class: str) -> bool:
        """Whether it counts pods of this priority class."""
        return counts_class(self.placed.quota, priority_class)


def fullness(level: Level) -> tuple[int, int]:
    """A sort key of levels: what is used of the limit, then the look's own rank."""
    return level.percent if level.percent is not None else -1, level.rank[0]


def may_raise(user: Any, line: QuotaLine) -> bool:
    """Whether the user may change the limits of a quota."""
    cluster, namespace, _ = line.place
    permission = roles.writing("ResourceQuota", "change")
    return roles.may(user, permission, cluster=cluster, namespace=namespace)


def decisions_of(user: Any, cluster: str = "") -> AuditEventQuerySet:
    """The decisions that the user may see, of one cluster or of all."""
    seen = roles.visible(AuditEvent.objects.all(), user, cluster="cluster", namespace="namespace")
    return seen.for_cluster(cluster) if cluster else seen


def quota_lines(
    user: Any, cluster: str = "", *, waiting: Iterable[WaitingOwner] | None = None
) -> list[QuotaLine]:
    """Every quota that the user sees, fullest first; three queries for any number of them."""
    known = snapshot.refresh().clusters
    asked: Mapping[str, Any] = {
        name: each
        for name, each in known.items()
        if cluster in ("", name) and roles.sees(user, name)
    }
    owners = waiting_owners(decisions_of(user, cluster)) if waiting is None else waiting
    demands = demand_by_quota(owners)
    lines = [
        QuotaLine(placed, demands.get((placed.cluster, placed.namespace, placed.quota.name)))
        for placed in visible_placed(asked, user)
    ]
    return fullest_first(lines)


def fullest_first(lines: Iterable[QuotaLine]) -> list[QuotaLine]:
    """Lines by how full they are, then by name."""
    by_name = sorted(lines, key=lambda line: (*line.place[1:], line.place[0]))
    return sorted(by_name, key=lambda line: line.rank, reverse=True)
