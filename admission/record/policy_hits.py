"""PolicyHits: how many recent decisions each policy refused, or would have."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, Count, Value, When

from admission.models import AuditEvent, Tally
from admission.models.tally import hit_texts, policies_in
from policies import roles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from admission.models import AuditEventQuerySet

    PolicyKey = tuple[str, str, str, str]

READ: Final = 20_000
"""Decisions that are read where no tallies are: no index has those with violations."""
READ_LIVE: Final = 200_000
"""Decisions that are read after the newest tally: of some minutes."""
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


def hits_since(
    since: datetime, *, cluster: str = "", namespace: str = "", user: Any = None
) -> RecentHits:
    """Count decisions from a moment on; six statements at most.

    Those of a cluster or a namespace, and those that ``user`` may see. Most are in tallies; of the
    decisions before and after these the newest are read, ``READ`` and ``READ_LIVE`` at most.
    """
    now, decisions = datetime.now(UTC), _decisions(cluster, namespace, user)
    counting = _Counting(since, now)
    stretches = Tally.objects.by_namespace_since(since)
    if stretches:
        begin, end = stretches
        first_unread = counting.read(decisions.between(end, None), READ_LIVE)
        if first_unread is None:
            sees = lru_cache(maxsize=None)(partial(roles.sees, user))
            found = Tally.objects.hits_in(stretches, cluster=cluster, namespace=namespace)
            for start, name, place, hits in found:
                if user is None or sees(name, place):
                    counting.add(name, hits, start)
            first_unread = counting.read(decisions.between(since, begin), READ)
    else:
        first_unread = counting.read(decisions.between(since, None), READ)
    return RecentHits(
        by_policy=counting.found, since=first_unread or since, is_cut=first_unread is not None
    )


def _decisions(cluster: str, namespace: str, user: Any) -> AuditEventQuerySet:
    rows: Any = AuditEvent.objects.all()
    if user is not None:
        rows = roles.visible(rows, user, cluster="cluster", namespace="namespace")
    rows = rows.for_cluster(cluster) if cluster else rows
    found: AuditEventQuerySet = rows.for_namespace(namespace) if namespace else rows
    return found


class _Counting:
    """The hits found so far, of a time that is cut into parts."""

    def __init__(self, since: datetime, until: datetime) -> None:
        self.found: dict[PolicyKey, PolicyHits] = {}
        self._since, self._length = since, max(until - since, timedelta(seconds=1))

    def read(self, decisions: AuditEventQuerySet, most: int) -> datetime | None:
        """Count the newest decisions; returns when the first was made that is not counted."""
        newest = decisions.newest_first().values_list("created", flat=True)
        first_unread = next(iter(newest[most : most + 1]), None)
        if first_unread is not None:
            decisions = decisions.filter(created__gt=first_unread)
        # Grouped by the texts: retries of one owner have the same violations, word for word.
        texts = (
            hit_texts(decisions)
            .annotate(part=self._part())
            .values_list("cluster", "refusing", "seen", "part")
        )
        for cluster, refusing, seen, part, number in texts.annotate(number=Count("id")):
            for policy in policies_in(refusing):
                self._add(cluster, policy, part, denied=number)
            for policy in policies_in(seen):
                self._add(cluster, policy, part, would_deny=number)
        return first_unread

    def add(self, cluster: str, hits: Mapping[str, Sequence[int]], start: datetime) -> None:
        """Count the hits of a tally."""
        part = min(int((start - self._since) / self._length * PARTS), PARTS - 1)
        for policy, (denied, would_deny) in hits.items():
            self._add(cluster, policy, part, denied=denied, would_deny=would_deny)

    def _add(
        self, cluster: str, policy: str, part: int, *, denied: int = 0, would_deny: int = 0
    ) -> None:
        kind, namespace, name = policy.split("/", 2)
        key = (cluster, kind, namespace, name)
        hits = self.found.setdefault(key, PolicyHits())
        hits.denied += denied
        hits.would_deny += would_deny
        hits.parts[part] += denied + would_deny

    def _part(self) -> Case:
        """The part that a decision was made in; comparisons are all that SQL needs."""
        begins = [(self._since + self._length * n / PARTS, n) for n in range(1, PARTS)]
        newest_first = [When(created__gte=at, then=Value(n)) for at, n in reversed(begins)]
        return Case(*newest_first, default=Value(0))
