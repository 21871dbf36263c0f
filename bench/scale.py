"""How much is needed for how much: formulas filled with a run's own figures. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench import names
from bench.figures import spread, values

if TYPE_CHECKING:
    from bench.report import Report

DAY: Final = 86_400
BUSY: Final = 0.5  # share of a core that may be in use, so that a burst finds room
PER_NAMESPACE: Final = 5  # policies
# Decisions each second that a cluster of so many namespaces is taken to ask for.
SIZES: Final = (
    ("10 namespaces", 10, 1.0),
    ("1,000 namespaces", 1_000, 20.0),
    ("100,000 namespaces", 100_000, 200.0),
    ("100 clusters, 200 decisions/s each", 100_000, 20_000.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What one of each costs: microseconds, bytes, and a worker's own memory in bytes."""

    decision_us: float
    database_us: float
    row_bytes: float
    policy_bytes: float
    worker_bytes: float


def costs_of(report: Report) -> Costs | None:
    """The medians of a full run; None of a run that did not measure them all."""
    figures = report.figures
    full = names.key(names.PRODUCT, names.SPREAD, names.CLOSED)
    found = [
        spread(values(figures, full, "cpu_us")),
        spread(values(figures, full, "database_us")),
        spread(values(figures, names.PRODUCT, "row_bytes")),
        spread(values(figures, names.LARGE, "policy_bytes")),
        spread(values(figures, names.PRODUCT, "worker_bytes")),
    ]
    known = [each.median for each in found if each]
    if len(known) != len(found):
        return None
    return Costs(
        decision_us=known[0],
        database_us=known[1],
        row_bytes=known[2],
        policy_bytes=known[3],
        worker_bytes=known[4],
    )


def cores(rate: float, microseconds: float) -> float:
    """Cores that so many decisions each second need, half of each left free."""
    return rate * microseconds / 1e6 / BUSY


def memory(costs: Costs, namespaces: int, workers: int) -> float:
    """Bytes that so many workers need; each keeps all policies."""
    return workers * (costs.worker_bytes + namespaces * PER_NAMESPACE * costs.policy_bytes)


def rows(costs: Costs) -> list[list[str]]:
    """A row for each size."""
    found = []
    for name, namespaces, rate in SIZES:
        serving = cores(rate, costs.decision_us)
        workers = max(2, -(-int(serving * 100) // 100))
        found.append(
            [
                name,
                f"{rate:,.0f}",
                f"{serving:.2f}",
                f"{cores(rate, costs.database_us):.2f}",
                str(workers),
                f"{memory(costs, namespaces, workers) / 1e9:,.2f}",
                f"{rate * DAY * costs.row_bytes / 1e9:,.1f}",
            ]
        )
    return found


HEADINGS: Final = (
    "size",
    "decisions/s at peak",
    "serving cores",
    "database cores",
    "workers",
    "memory of workers, GB",
    "record, GB a day at that rate",
)


def as_markdown(report: Report) -> str:
    """The costs and the sizes, for the documentation."""
    costs = costs_of(report)
    if costs is None:
        return "This run did not measure all costs: run `make bench`."
    lines = [
        "| one … | costs |",
        "|---|---|",
        f"| decision, serving CPU | {costs.decision_us:,.0f} us |",
        f"| decision, database CPU | {costs.database_us:,.0f} us |",
        f"| row of the record, with its indexes | {costs.row_bytes:,.0f} bytes |",
        f"| policy in a worker's memory | {costs.policy_bytes:,.0f} bytes |",
        f"| worker without policies | {costs.worker_bytes / 1e6:,.0f} MB |",
        "",
        f"| {' | '.join(HEADINGS)} |",
        "|" + "---|" * len(HEADINGS),
        *(f"| {' | '.join(row)} |" for row in rows(costs)),
    ]
    return "\n".join(lines)
