"""What a run says: tables for a terminal and the documentation, JSON for history.

The sizes of `scale.md` are formulas filled with the run's own figures.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bench import figures as f
from bench.figures import is_noisy, ratios, spread, values
from bench.goals import ELSEWHERE, GOALS, judge
from bench.machine import RESULTS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bench.figures import Figures
    from bench.goals import Verdict

PAGE: Final = ROOT / "docs" / "explanation" / "performance.md"
SCALE: Final = ROOT / "docs" / "explanation" / "scale.md"
HEADINGS: Final = (
    "subject and load",
    "decisions/s",
    "least-most",
    "/ floor",
    "p50 ms",
    "p99 ms",
    "CPU us",
    "database us",
    "memory MB",
)
ENGINE_HEADINGS: Final = ("in one process", "us", "least-most", "/ orjson.loads")
GOAL_HEADINGS: Final = ("goal", "measured", "least-most", "base", "", "stretch", "")
DAY: Final = 86_400
BUSY: Final = 0.5  # share of a core that may be in use, so that a burst finds room
PER_NAMESPACE: Final = 5  # policies
COSTS: Final = {
    "decision, serving CPU, us": (f.FULL, "cpu_us"),
    "decision, database CPU, us": (f.FULL, "database_us"),
    "row of the record, with its indexes, bytes": (f.PRODUCT, "row_bytes"),
    "policy in a worker's memory, bytes": (f.LARGE, "policy_bytes"),
    "web process without policies, parent shared, bytes": (f.PRODUCT, "worker_bytes"),
}
# Decisions each second that a cluster of so many namespaces is taken to ask for.
SIZES: Final = (
    ("10 namespaces", 10, 1.0),
    ("1,000 namespaces", 1_000, 20.0),
    ("100,000 namespaces", 100_000, 200.0),
    ("100 clusters, 200 decisions/s each", 100_000, 20_000.0),
)
SIZE_HEADINGS: Final = (
    "size",
    "decisions/s at peak",
    "serving cores",
    "database cores",
    "workers",
    "memory of workers, GB",
    "record, GB a day at that rate",
)


@dataclass(frozen=True, slots=True)
class Report:
    """All of one run."""

    header: Mapping[str, str | float]
    figures: Figures
    exact: Sequence[str]
    skipped: Mapping[str, str]

    @property
    def noisy(self) -> bool:
        """Whether the floor moved so much that ratios are only reported."""
        return is_noisy(values(self.figures, f.LEAN_FULL, "rps"))

    @property
    def verdicts(self) -> list[Verdict]:
        """What came of each goal."""
        return [judge(goal, self.figures, noisy=self.noisy) for goal in GOALS]

    @property
    def failed(self) -> list[Verdict]:
        """The goals whose base was missed."""
        return [verdict for verdict in self.verdicts if verdict.base_met == "FAIL"]

    def as_json(self) -> dict[str, Any]:
        """For history."""
        return {
            "header": self.header,
            "noisy": self.noisy,
            "figures": self.figures,
            "goals": [verdict._asdict() for verdict in self.verdicts],
            "exact": self.exact,
            "skipped": self.skipped,
        }


def load_report(path: Path) -> Report:
    """Read what ``save`` wrote."""
    found = json.loads(path.read_text("utf-8"))
    return Report(found["header"], found["figures"], found["exact"], found["skipped"])


def save(found: Mapping[str, Any], *, name: str) -> Path:
    """Write what was found to the folder of results, for history and as the latest."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    text = json.dumps({"when": moment, **found}, indent=1) + "\n"
    path = RESULTS / f"{moment}-{name}.json"
    for each in (path, RESULTS / f"latest-{name}.json"):
        each.write_text(text, encoding="utf-8")
    return path


def floor_of(name: str, figures: Figures) -> str:
    """The subject that a figure is held against in its own round; empty where there is none."""
    subject, _, load = name.partition(" | ")
    load = load.rpartition(" | ")[2] or load
    if subject in {f.WRITER, f.PER_REQUEST}:
        return f.key(f.INSERT, f.SLOW) if load == f.SLOW else f.INSERT
    if subject == f.LARGE:
        return f.BESIDE
    found = f.key(f.LEAN, load)
    is_floor = subject in {f.LEAN, f.INSERT} or name == f.BESIDE
    return found if load in {f.CLOSED, f.FEW} and found in figures and not is_floor else ""


def rows(report: Report) -> Iterator[list[str]]:
    """A row for each subject and load: medians over the rounds."""
    figures = report.figures
    for name in figures:
        rates = values(figures, name, "rps")
        floor = spread(ratios(rates, values(figures, floor_of(name, figures), "rps")))
        if rates:
            costs = {"p50": 1, "p99": 1, "cpu_us": 0, "database_us": 0, "memory_mb": 0}
            cells = [_cells(values(figures, name, of), digits)[0] for of, digits in costs.items()]
            yield [name, *_cells(rates, 0), f"{floor.median:.2f}" if floor else "", *cells]


def _cells(found: Sequence[float], digits: int) -> tuple[str, str]:
    """The median, and the least and the most."""
    of = spread(found)
    if of is None:
        return "", ""
    return f"{of.median:,.{digits}f}", f"{of.least:,.{digits}f}-{of.most:,.{digits}f}"


def engine_rows(report: Report) -> Iterator[list[str]]:
    """A row for each engine in one process: microseconds, and times the fast reader's."""
    below = values(report.figures, "orjson.loads", "us")
    for name in report.figures:
        times = values(report.figures, name, "us")
        if ratio := spread(ratios(times, below)):
            yield [name, *_cells(times, 1), f"{ratio.median:,.1f}"]


def goal_rows(report: Report) -> Iterator[list[str]]:
    """A row for each goal."""
    for name, found, *limits in report.verdicts:
        yield [name, *_cells(found or (), 2), *limits]
    for name, target in ELSEWHERE.items():
        yield [name, "", "", "", "not measured here", "", target]


def header_line(header: Mapping[str, str | float]) -> str:
    """What the figures depend on."""
    return f"Measured on {'; '.join(f'{name}: {value}' for name, value in header.items())}."


def as_markdown(report: Report) -> str:
    """The whole run: for a terminal and for the documentation."""
    noise = "**noisy: ratios are reported, not judged**" if report.noisy else "not noisy"
    met = sum(verdict.base_met == "PASS" for verdict in report.verdicts)
    parts = [
        header_line(report.header),
        f"{len(report.exact)} loads were counted exactly; the run was {noise}.",
        f"{met} goals were met, {len(report.failed)} were missed.",
        *(f"Left out: {name}, {why}." for name, why in report.skipped.items()),
        table([HEADINGS, *rows(report)]),
        table([ENGINE_HEADINGS, *engine_rows(report)]),
        table([GOAL_HEADINGS, *goal_rows(report)]),
    ]
    return "\n\n".join(parts)


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its columns aligned; the first row has the headings."""
    cells = [[cell.replace(" | ", ", ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    lines = (map(str.ljust, row, widths) for row in cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_between(path: Path, mark: str, text: str) -> None:
    """Replace what stands between two comments of a page; raises ``ValueError`` without them."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    page = path.read_text("utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{path.name} has no place marked {mark}")
    made = f"{begin}\n\n{text}\n\n{end}"
    path.write_text(pattern.sub(lambda _found: made, page), encoding="utf-8")


def costs_of(report: Report) -> list[float] | None:
    """What one of each costs, the medians of a full run; None where not all were measured."""
    found = [spread(values(report.figures, *place)) for place in COSTS.values()]
    known = [each.median for each in found if each]
    return known if len(known) == len(found) else None


def cores(rate: float, microseconds: float) -> float:
    """Cores that so many decisions each second need, half of each left free."""
    return rate * microseconds / 1e6 / BUSY


def scale_rows(costs: list[float]) -> Iterator[list[str]]:
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


def scale_as_markdown(report: Report) -> str:
    """The costs and the sizes, for the documentation."""
    costs = costs_of(report)
    if costs is None:
        return "This run did not measure all costs: run `make bench`."
    listed = [[name, f"{cost:,.0f}"] for name, cost in zip(COSTS, costs, strict=True)]
    return f"{table([['one …', 'costs'], *listed])}\n\n{table([SIZE_HEADINGS, *scale_rows(costs)])}"


def write_docs() -> int:
    """Put the last full run (`make bench`) into the pages."""
    found = load_report(RESULTS / "latest-full-postgresql.json")
    write_between(PAGE, "bench", as_markdown(found))
    write_between(SCALE, "bench", scale_as_markdown(found))
    return 0
