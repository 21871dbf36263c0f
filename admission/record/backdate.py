"""PastCall: a demo's decision as of a past moment, its row recorded, its Tally added up.

The caller brings the used amounts and keeps the charges; nothing is charged here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from admission.models import DayTally, Tally, partitions
from admission.models.decision_id import encode
from admission.models.tally import add_hits, add_outcome, column_of, new_columns, stretch_of
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
    """One call of the past; ``microseconds`` is how long its answer took."""

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
    call: PastCall, policies: PolicySet, used: UsedAmounts
) -> tuple[Decision, Mapping[str, Any]]:
    """Decide as of the moment of the call; also returns the row for the record."""
    prepared = chain.prepare(
        call.request, policies, phase=call.phase, now=int(call.moment.timestamp())
    )
    decision = prepared.decide(used)
    circumstances = write.Circumstances(
        cluster=policies.cluster,
        phase=call.phase,
        client=call.client,
        started=time.monotonic_ns() - call.microseconds * 1000,
        policy_revision=call.revision,
        policies=write.columns_of_policies(policies),
    )
    request_columns = write.columns_of(call.request)
    return decision, write.row(
        decision, decision_id=call.id, request_columns=request_columns, circumstances=circumstances
    )


@transaction.atomic
def keep(rows: Sequence[Mapping[str, Any]]) -> None:
    """Record rows, and add them to the tallies of their time, which no task counts again."""
    days = sorted({row["created"].date() for row in rows})
    for day in days:
        partitions.ensure(day)
    write.write(rows)
    tallies: dict[tuple[str, datetime], dict[str, Any]] = {}
    for row in rows:
        columns = tallies.setdefault((row["cluster"], stretch_of(row["created"])), new_columns())
        outcome, place = column_of(row["verdict"], row["reasons"]), row["namespace"]
        add_outcome(columns, place, outcome, 1, dry_run=bool(row["dry_run"]))
        add_hits(columns, place, (row["violations"], row["observed"]), 1)
    DayTally.objects.filter(day__in=days).delete()  # a task counts these days again
    # A stretch that a task has counted already stays as it is.
    made = [Tally(cluster=name, start=start, **each) for (name, start), each in tallies.items()]
    Tally.objects.bulk_create(made, ignore_conflicts=True)
