"""What is counted about answers, for Prometheus. Labels hold nothing a caller can invent."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Histogram

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
