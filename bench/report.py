"""What a run says: lines for a terminal, JSON for history, tables for the documentation."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bench import names
from bench.figures import is_noisy, ratios, spread, values
from bench.goals import ELSEWHERE, LEAN_FULL, judge_all
from bench.load import SHARE_OF_A_CORE
from bench.places import RESULTS, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bench.figures import Figures
    from bench.goals import Verdict

PAGE: Final = ROOT / "docs" / "explanation" / "performance.md"
BESIDE: Final = names.key(names.PRODUCT, names.SPREAD, names.CLOSED, "beside 50,000")
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
    "workers MB",
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
        return is_noisy(values(self.figures, LEAN_FULL, "rps"))

    @property
    def client(self) -> float:
        """The largest share of a core that the load client took beside the product."""
        shares = (
            share
            for name in self.figures
            if name.startswith(names.PRODUCT)
            for share in values(self.figures, name, "client")
        )
        return max(shares, default=0.0)

    @property
    def verdicts(self) -> list[Verdict]:
        """What came of each goal."""
        return judge_all(self.figures, noisy=self.noisy)

    @property
    def failed(self) -> list[Verdict]:
        """The goals whose base was missed."""
        return [verdict for verdict in self.verdicts if verdict.base == "FAIL"]

    def as_json(self) -> dict[str, Any]:
        """For history."""
        return {
            "header": dict(self.header),
            "noisy": self.noisy,
            "figures": {name: list(rounds) for name, rounds in self.figures.items()},
            "goals": [_goal(verdict) for verdict in self.verdicts],
            "exact": list(self.exact),
            "skipped": dict(self.skipped),
        }


def _goal(verdict: Verdict) -> dict[str, Any]:
    found = verdict.found
    return {
        "goal": verdict.goal.name,
        "median": found and found.median,
        "least": found and found.least,
        "most": found and found.most,
        "base": verdict.goal.base,
        "stretch": verdict.goal.stretch,
        "base met": verdict.base,
        "stretch met": verdict.stretch,
    }


def load_report(path: Path) -> Report:
    """Read what ``save`` wrote."""
    found = json.loads(path.read_text("utf-8"))
    return Report(found["header"], found["figures"], found["exact"], found["skipped"])


def save(report: Report, *, name: str) -> Path:
    """Write the run to the folder of results; gives the file."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report.as_json(), indent=1) + "\n"
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = RESULTS / f"{moment}-{name}.json"
    for each in (path, RESULTS / f"latest-{name}.json"):
        each.write_text(text, encoding="utf-8")
    return path


def floor_of(name: str, figures: Figures) -> str:
    """The subject that a figure is held against in its own round; empty where there is none."""
    subject, _, load = name.partition(" | ")
    load = load.rpartition(" | ")[2] or load
    if subject in {names.WRITER, names.PER_REQUEST}:
        slow = names.key(names.INSERT, names.SLOW)
        return slow if load == names.SLOW else names.INSERT
    if subject == names.LARGE:
        return BESIDE
    if name in {names.INSERT, BESIDE} or subject == names.LEAN:
        return ""
    found = names.key(names.LEAN, load)
    return found if load in {names.CLOSED, names.FEW} and found in figures else ""


def rows(report: Report) -> list[list[str]]:
    """A row for each subject and load: medians over the rounds."""
    figures = report.figures
    return [_row(name, figures) for name in figures if values(figures, name, "rps")]


def _row(name: str, figures: Figures) -> list[str]:
    rates = values(figures, name, "rps")
    found = spread(rates)
    if found is None:
        return [name]
    floor = spread(ratios(rates, values(figures, floor_of(name, figures), "rps")))
    return [
        name,
        f"{found.median:,.0f}",
        f"{found.least:,.0f}-{found.most:,.0f}",
        f"{floor.median:.2f}" if floor else "",
        *(_median(figures, name, metric, 1) for metric in ("p50", "p99")),
        *(_median(figures, name, metric, 0) for metric in ("cpu_us", "database_us", "rss_mb")),
    ]


def _median(figures: Figures, name: str, metric: str, digits: int) -> str:
    found = spread(values(figures, name, metric))
    return f"{found.median:,.{digits}f}" if found else ""


def engine_rows(report: Report) -> list[list[str]]:
    """A row for each engine in one process: microseconds, and times the fast reader's."""
    below = values(report.figures, "orjson.loads", "us")
    found = []
    for name in report.figures:
        times = spread(values(report.figures, name, "us"))
        ratio = spread(ratios(values(report.figures, name, "us"), below))
        if times and ratio:
            least, most = f"{times.least:,.1f}", f"{times.most:,.1f}"
            found.append([name, f"{times.median:,.1f}", f"{least}-{most}", f"{ratio.median:,.1f}"])
    return found


ENGINE_HEADINGS: Final = ("in one process", "us", "least-most", "/ orjson.loads")
GOAL_HEADINGS: Final = ("goal", "measured", "least-most", "base", "", "stretch", "")


def goal_rows(report: Report) -> list[list[str]]:
    """A row for each goal."""
    found = []
    for verdict in report.verdicts:
        goal, sign = verdict.goal, "<=" if verdict.goal.at_most else ">="
        name = f"{goal.name} ({goal.note})" if goal.note else goal.name
        measured = verdict.found
        found.append(
            [
                name,
                f"{measured.median:.2f}" if measured else "",
                f"{measured.least:.2f}-{measured.most:.2f}" if measured else "",
                f"{sign} {goal.base:g}",
                verdict.base,
                f"{sign} {goal.stretch:g}" if goal.stretch is not None else "",
                verdict.stretch,
            ]
        )
    elsewhere = [
        [name, "", "", "", "not measured here", "", why] for name, why in ELSEWHERE.items()
    ]
    return found + elsewhere


def as_text(report: Report) -> str:
    """The whole run for a terminal."""
    parts = [
        "\n".join(f"{name}: {value}" for name, value in report.header.items()),
        _columns([list(HEADINGS), *rows(report)]),
        _columns([list(ENGINE_HEADINGS), *engine_rows(report)]),
        _columns([list(GOAL_HEADINGS), *goal_rows(report)]),
        "\n".join(f"exact: {line}" for line in report.exact[-1:]),
        f"exactness checks passed: {len(report.exact)}",
    ]
    parts += [f"SKIPPED {name}: {why}" for name, why in report.skipped.items()]
    if report.client > SHARE_OF_A_CORE:
        parts.append(f"The load client took up to {report.client:.0%} of a core.")
    if report.noisy:
        parts.append(
            "NOISY: the floor moved more than 1.5 times between rounds; ratios are reported"
        )
    passed = sum(verdict.base == "PASS" for verdict in report.verdicts)
    parts.append(f"goals: {passed} passed, {len(report.failed)} failed")
    return "\n\n".join(part for part in parts if part)


def _columns(table: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    )


def as_markdown(report: Report) -> str:
    """The run's tables for the documentation."""
    header = "; ".join(f"{name}: {value}" for name, value in report.header.items())
    noise = "**noisy: ratios are reported, not judged**" if report.noisy else "not noisy"
    checks = f"{len(report.exact)} loads were counted exactly; the run was {noise}."
    skipped = "".join(f"\n\nLeft out: {name}, {why}." for name, why in report.skipped.items())
    return "\n\n".join(
        [
            f"Measured on {header}.",
            checks + skipped,
            _table(HEADINGS, [[_cell(c) for c in row] for row in rows(report)]),
            _table(ENGINE_HEADINGS, engine_rows(report)),
            _table(GOAL_HEADINGS, goal_rows(report)),
        ]
    )


def _cell(text: str) -> str:
    return text.replace(" | ", ", ")


def _table(headings: Sequence[str], found: Sequence[Sequence[str]]) -> str:
    lines = [_line(headings), "|" + "---|" * len(headings), *(_line(row) for row in found)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write_between(path: Path, mark: str, text: str) -> None:
    """Replace what stands between two comments of a page; raises ``ValueError`` without them."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    page = path.read_text("utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{path.name} has no place marked {mark}")
    made = f"{begin}\n\n{text}\n\n{end}"
    path.write_text(pattern.sub(lambda _found: made, page), encoding="utf-8")
