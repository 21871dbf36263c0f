"""Write decisions of the past, for demonstrations: decided by the engine, dated back.

Whoever asks brings the used amounts and keeps the charges; here nothing is charged.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from admission.models import Tally, partitions
from admission.models.decision_id import encode
from admission.models.tally import column_of, stretch_of
from admission.record import write
from engine import chain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from engine.decision import Decision
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest, Phase
    from engine.resource_quota import UsedAmounts


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """One call as it would have come; ``microseconds`` is what the answer took."""

    request: AdmissionRequest
    phase: Phase
    moment: datetime
    microseconds: int
    client: str
    random: int
    revision: int

    @property
    def id(self) -> str:
        """The decision's id, which begins with the moment."""
        return encode(int(self.moment.timestamp() * 1000), self.random)


def decide(
    asked: PastCall, policies: PolicySet, used: UsedAmounts
) -> tuple[Decision, Mapping[str, Any]]:
    """Judge as it would have been judged then; also gives the row for the record."""
    prepared = chain.prepare(
        asked.request, policies, phase=asked.phase, now=int(asked.moment.timestamp())
    )
    decision = prepared.decide(used)
    circumstances = write.Circumstances(
        cluster=policies.cluster,
        phase=asked.phase,
        client=asked.client,
        started=time.monotonic_ns() - asked.microseconds * 1000,
        policy_revision=asked.revision,
        policies=write.asked_of(policies),
    )
    columns = write.columns_of(asked.request)
    return decision, write.row(
        decision, decision_id=asked.id, asked=columns, circumstances=circumstances
    )


@transaction.atomic
def keep(rows: Sequence[Mapping[str, Any]]) -> None:
    """Put rows on record, and count them as if they had been counted in their time."""
    for day in sorted({row["created"].date() for row in rows}):
        partitions.ensure(day)
    write.write(rows)
    counts: Counter[tuple[str, datetime, str]] = Counter()
    for row in rows:
        place = (row["cluster"], stretch_of(row["created"]))
        counts[*place, column_of(row["verdict"], row["reasons"])] += 1
        counts[*place, "dry_run"] += bool(row["dry_run"])
    tallies: dict[tuple[str, datetime], Tally] = {}
    for (cluster, start, name), number in counts.items():
        tally = tallies.setdefault((cluster, start), Tally(cluster=cluster, start=start))
        setattr(tally, name, number)
    Tally.objects.bulk_create(tallies.values(), ignore_conflicts=True)
