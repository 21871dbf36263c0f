"""Prometheus counters of decisions, refused calls, failures, hints, waits; histograms."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Collection

DECISIONS: Final = Counter(
    "gatehouse_admission_decisions",
    "Admission reviews answered and recorded.",
    ["cluster", "phase", "verdict", "dry_run"],
)
SECONDS: Final = Histogram(
    "gatehouse_admission_seconds",
    "Time from the first byte read to the answer.",
    ["phase"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
REFUSED: Final = Counter(
    "gatehouse_admission_refused",
    "Calls turned away without a decision: bad credential, not a review.",
    ["status"],
)
FAILURES: Final = Counter(
    "gatehouse_admission_failures",
    "Calls we could not answer: database, time budget, defect.",
    ["status"],
)
BATCH: Final = Histogram(
    "gatehouse_admission_batch_decisions",
    "Decisions that were recorded in one transaction.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
HINTS: Final = Counter(
    "gatehouse_admission_hints",
    "Writes of policies and namespaces that were let pass: announced, or why not.",
    ["outcome"],
)
WAITS: Final = Counter(
    "gatehouse_admission_waits",
    "Reviews that waited, for a write under way or for room, gave up, or were too many.",
    ["outcome"],
)
QUEUED: Final = Gauge(
    "gatehouse_admission_queued_mutations",
    "Mutations that are answered, and not on record yet (GATEHOUSE_RECORD_MUTATIONS=queued).",
    multiprocess_mode="livesum",
)
NOT_KNOWN_YET: Final = Counter(
    "gatehouse_admission_namespace_not_known_yet",
    "Creates told to try again: their namespace is unknown, and a class may match it.",
    ["cluster"],
)
_PHASES: Final = ("mutate", "validate")
_VERDICTS: Final = ("allowed", "mutated", "denied")
_REFUSED: Final = ("400", "401", "403", "405", "413", "415")
_FAILED: Final = ("500", "503")
_HINTED: Final = ("announced", "no-follower", "no-change", "failed")
_WAITED: Final = ("waited", "gave-up", "too-many", "for-room")


def begin_at_zero(clusters: Collection[str]) -> None:
    """Show every counter from the start: a rate needs the zero before the first event."""
    # Labels come from these lists and the clusters stored here: a caller cannot invent any.
    for phase, verdict, cluster in itertools.product(_PHASES, _VERDICTS, clusters):
        for dry_run in ("false", "true"):
            DECISIONS.labels(cluster=cluster, phase=phase, verdict=verdict, dry_run=dry_run)
    for metric, label, values in (
        (NOT_KNOWN_YET, "cluster", clusters),
        (SECONDS, "phase", _PHASES),
        (REFUSED, "status", _REFUSED),
        (FAILURES, "status", _FAILED),
        (HINTS, "outcome", _HINTED),
        (WAITS, "outcome", _WAITED),
    ):
        for value in values:
            metric.labels(**{label: value})
