"""How much is needed for how much: formulas filled with a run's own figures. Pure arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench import figures as f
from bench.figures import spread, values
from bench.report import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.report import Report

DAY: Final = 86_400
BUSY: Final = 0.5  # share of a core that may be in use, so that a burst finds room
PER_NAMESPACE: Final = 5  # policies
COSTS: Final = {
    "decision, serving CPU, us": (f.FULL, "cpu_us"),
    "decision, database CPU, us": (f.FULL, "database_us"),
    "row of the record, with its indexes, bytes": (f.PRODUCT, "row_bytes"),
    "policy in a worker's memory, bytes": (f.LARGE, "policy_bytes"),
    "worker without policies, bytes": (f.PRODUCT, "worker_bytes"),
}
# Decisions each second that a cluster of so many namespaces is taken to ask for.
SIZES: Final = (
    ("10 namespaces", 10, 1.0),
    ("1,000 namespaces", 1_000, 20.0),
    ("100,000 namespaces", 100_000, 200.0),
    ("100 clusters, 200 decisions/s each", 100_000, 20_000.0),
)
HEADINGS: Final = (
    "size",
    "decisions/s at peak",
    "serving cores",
    "database cores",
    "workers",
    "memory of workers, GB",
    "record, GB a day at that rate",
)


def costs_of(report: Report) -> list[float] | None:
    """What one of each costs, the medians of a full run; None where not all were measured."""
    found = [spread(values(report.figures, *place)) for place in COSTS.values()]
    known = [each.median for each in found if each]
    return known if len(known) == len(found) else None


def cores(rate: float, microseconds: float) -> float:
    """Cores that so many decisions each second need, half of each left free."""
    return rate * microseconds / 1e6 / BUSY


def rows(costs: list[float]) -> Iterator[list[str]]:
    """A row for each size; each worker keeps all policies."""
    decision, database, row, policy, worker = costs
    for name, namespaces, rate in SIZES:
        serving = cores(rate, decision)
        workers = max(2, -(-int(serving * 100) // 100))
        memory = workers * (worker + namespaces * PER_NAMESPACE * policy)
        yield [
            name,
            f"{rate:,.0f}",
            f"{serving:.2f}",
            f"{cores(rate, database):.2f}",
            str(workers),
            f"{memory / 1e9:,.2f}",
            f"{rate * DAY * row / 1e9:,.1f}",
        ]


def as_markdown(report: Report) -> str:
    """The costs and the sizes, for the documentation."""
    costs = costs_of(report)
    if costs is None:
        return "This run did not measure all costs: run `make bench`."
    listed = [[name, f"{cost:,.0f}"] for name, cost in zip(COSTS, costs, strict=True)]
    return f"{table([['one …', 'costs'], *listed])}\n\n{table([HEADINGS, *rows(costs)])}"
