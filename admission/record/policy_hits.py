"""PolicyHits: how many recent decisions each policy refused, or would have; one grouped query."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import orjson
from django.db.models import Case, Count, TextField, Value, When
from django.db.models.functions import Cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from admission.models import AuditEventQuerySet

    PolicyKey = tuple[str, str, str, str]

READ: Final = 20_000
"""Decisions that are read: no index has those with violations, so that more would cost more."""
PARTS: Final = 24
"""Parts of the time asked for, of equal length, in which hits are counted: of a day hours."""


@dataclass(slots=True)
class PolicyHits:
    """Decisions that one policy refused, and those that it only warned of or recorded."""

    denied: int = 0
    would_deny: int = 0
    parts: list[int] = field(default_factory=lambda: [0] * PARTS)
    """Both together in each part of the time, the oldest first."""

    @property
    def total(self) -> int:
        """All that it found a violation in."""
        return self.denied + self.would_deny


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentHits:
    """The hits of all policies, by cluster, kind, namespace and name.

    They are of all decisions since ``since``; ``is_cut``: that is later than was asked for.
    """

    by_policy: Mapping[PolicyKey, PolicyHits]
    since: datetime
    is_cut: bool


def hits_since(decisions: AuditEventQuerySet, since: datetime) -> RecentHits:
    """Count decisions from a moment on, but of the newest ``READ`` alone; two statements.

    A policy counts once for a decision, however many violations of it there are.
    """
    part = _part_between(since, datetime.now(UTC))
    recent, first_unread = _newest_since(decisions, since)
    # Grouped by the texts: retries of one owner have the same violations, word for word.
    grouped = (
        recent.filter(reasons__gt="")
        .annotate(
            refusing=Cast("violations", TextField()), seen=Cast("observed", TextField()), part=part
        )
        .order_by()
        .values_list("cluster", "refusing", "seen", "part")
        .annotate(number=Count("id"))
    )
    found: dict[PolicyKey, PolicyHits] = {}
    for cluster, refusing, seen, of_part, number in grouped:
        for policy in _policies_in(refusing):
            hits = found.setdefault((cluster, *policy), PolicyHits())
            hits.denied += number
            hits.parts[of_part] += number
        for policy in _policies_in(seen):
            hits = found.setdefault((cluster, *policy), PolicyHits())
            hits.would_deny += number
            hits.parts[of_part] += number
    return RecentHits(by_policy=found, since=first_unread or since, is_cut=first_unread is not None)


def observed_since(decisions: AuditEventQuerySet, since: datetime) -> Counter[PolicyKey]:
    """As the ``would_deny`` of ``hits_since``, without counting what was refused."""
    recent, _ = _newest_since(decisions, since)
    grouped = (
        recent.filter(reasons__gt="")
        .annotate(seen=Cast("observed", TextField()))
        .exclude(seen="[]")
        .order_by()
        .values_list("cluster", "seen")
        .annotate(number=Count("id"))
    )
    found: Counter[PolicyKey] = Counter()
    for cluster, seen, number in grouped:
        for policy in _policies_in(seen):
            found[cluster, *policy] += number
    return found


def _newest_since(
    decisions: AuditEventQuerySet, since: datetime
) -> tuple[AuditEventQuerySet, datetime | None]:
    """The newest ``READ`` decisions since a moment, and when the first of the others was made."""
    recent = decisions.between(since, None)
    newest = recent.newest_first().values_list("created", flat=True)
    first_unread = next(iter(newest[READ : READ + 1]), None)
    return (
        recent if first_unread is None else recent.filter(created__gt=first_unread)
    ), first_unread


def _part_between(since: datetime, until: datetime) -> Case:
    """The part of the time that a decision was made in; comparisons are all that SQL needs."""
    begins = [(since + (until - since) * number / PARTS, number) for number in range(1, PARTS)]
    newest_first = [When(created__gte=at, then=Value(number)) for at, number in reversed(begins)]
    return Case(*newest_first, default=Value(0))


def _policies_in(violations: str) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of the policies of violations; some violations have none."""
    policies = (each.get("policy") for each in orjson.loads(violations) if isinstance(each, dict))
    return {
        (policy["kind"], policy.get("namespace", ""), policy["name"])
        for policy in policies
        if policy
    }
