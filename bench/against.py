"""`python -m bench against COMMIT`: this checkout beside an earlier commit, by turns.

Both products run at the same time on one database server, each on a database of its own that its
own code has filled; one is asked, then the other, and who begins changes from pair to pair. What
is shown is the ratio of each pair, so that a machine that changes its pace does so for both.
"""

from __future__ import annotations

import io
import math
import statistics
import subprocess
import sys
import tarfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench import database, report, run, servers
from bench.figures import CLOSED, FULL, HALF, HOT, PRODUCT, QUIET, SPREAD, WRITER, key, values
from bench.load import Load
from bench.machine import ROOT, MissingError, git, surroundings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.figures import Figures

ENGINE_ROUNDS: Final = "3"
SECONDS: Final = run.QUICK.seconds
CONFIDENCE: Final = 0.95
FLOOR: Final = 0.95
FEWEST: Final = 6  # pairs: of fewer, no interval is that certain


class Measure(NamedTuple):
    """One figure that both commits are held against."""

    name: str
    figure: str
    metric: str

    @property
    def is_cost(self) -> bool:
        """Whether less of it is better."""
        return self.metric != "rps"


class Compared(NamedTuple):
    """The ratio new / old of one measure, turned so that below 1 is worse.

    ``least`` and ``most`` bound the median of the pairs' ratios with at least 95 % confidence;
    with fewer than six pairs they are the smallest and the largest ratio, and nothing is judged.
    """

    measure: Measure
    pairs: int
    median: float
    least: float
    most: float

    @property
    def worse(self) -> bool:
        """Whether the whole interval lies below what is let pass."""
        return self.pairs >= FEWEST and self.most < FLOOR


MEASURES: Final = (
    Measure("decisions/s, 100 quotas", FULL, "rps"),
    Measure("decisions/s, one hot quota", key(PRODUCT, HOT, CLOSED), "rps"),
    Measure("CPU per decision", FULL, "cpu_us"),
    Measure("database CPU per decision", FULL, "database_us"),
    Measure("p50 at 200/s", key(PRODUCT, SPREAD, QUIET), "p50"),
    Measure("p99 at 200/s", key(PRODUCT, SPREAD, QUIET), "p99"),
    Measure("p50 at half saturation", key(PRODUCT, SPREAD, HALF), "p50"),
    Measure("p99 at half saturation", key(PRODUCT, SPREAD, HALF), "p99"),
    Measure("memory of all processes", FULL, "memory_mb"),
    Measure("writer alone, 100 quotas", key(WRITER, SPREAD), "rps"),
    Measure("writer alone, one hot quota", key(WRITER, HOT), "rps"),
    Measure("engine, mutate", "engine, mutate", "us"),
    Measure("engine, validate", "engine, validate", "us"),
)


def measure(commit: str, count: int, *, sqlite: bool) -> int:
    """Measure, print, keep. 0: nothing is worse; 2: something is worse."""
    with run.prepared(run.QUICK, sqlite=sqlite) as made, ExitStack() as stack:
        earlier = made.folder / "earlier"
        unpack(commit, earlier)
        python = _python(earlier)
        old = replace(made, label="old", checkout=earlier, python=python, figures={}, running={})
        new = replace(made, label="new", figures={}, running={})
        for side in (old, new):
            _start(side, stack)
        for number in range(count):
            print(f"pair {number + 1} of {count}", flush=True)
            _measure_pair((old, new) if number % 2 else (new, old))
    found = compare_all(old.figures, new.figures)
    print(f"\n{commit} beside {git('describe', '--always', '--dirty')}, {count} pairs\n")
    print(as_text(found))
    ratios = {each.measure.name: [each.least, each.median, each.most] for each in found}
    kept = {"ratios": ratios, "old": old.figures, "new": new.figures}
    print(report.save(kept, name=f"against-{commit.replace('/', '-')}"))
    return 2 if any(each.worse for each in found) else 0


def _start(side: run.Run, stack: ExitStack) -> None:
    """Have its own code fill its database, then start its product and warm it up."""
    name = side.label
    side.databases.clone(database.EMPTY, name)
    side.seed("small", name)
    # What is measured without a server writes, too: not into the database that loads are held to.
    side.databases.clone(name, f"{name}_served")
    product = servers.product(f"{name}_served", side.secret, name=f"{PRODUCT} {name}")
    words = [side.python, *product.words[1:]]
    subject = replace(product, words=words, folder=side.checkout)
    side.running[PRODUCT] = stack.enter_context(side.start(subject))


def unpack(commit: str, folder: Path) -> None:
    """Put a commit's files into a folder; raises ``MissingError`` where there is no such commit."""
    words = ["git", "-C", str(ROOT), "archive", "--format=tar", commit]
    done = subprocess.run(words, capture_output=True, check=False)  # noqa: S603 - no shell, one commit
    if done.returncode:
        raise MissingError(f"there is no commit {commit} here: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _python(folder: Path) -> str:
    """The Python for a commit: this one, or, where it was built on other libraries, its own."""
    pins = Path("requirements") / "main.txt"
    if (folder / pins).read_bytes() == (ROOT / pins).read_bytes():
        return sys.executable
    words = [sys.executable, "-m", "portal.dev.install", "main"]
    subprocess.run(words, cwd=folder, env=surroundings(), check=True)  # noqa: S603 - our own words
    return str(folder / ".venv" / "bin" / "python")


def _measure_pair(order: tuple[run.Run, run.Run]) -> None:
    """Each load once for both, one directly after the other."""
    for label, quota in run.QUOTAS.items():
        _load_both(order, key(PRODUCT, label, CLOSED), Load(namespaces=quota, seconds=SECONDS))
    half = min(side.figures[FULL][-1]["rps"] for side in order) / 2
    for label, rate in ((QUIET, run.QUIET_RATE), (HALF, half)):
        asked = Load(connections=run.OPEN_CONNECTIONS, rate=rate, seconds=run.QUICK.open_seconds)
        _load_both(order, key(PRODUCT, SPREAD, label), asked)
    for side in order:
        words = ("1", str(SECONDS), side.databases.kind, "usual")
        (writers,) = side.ask("bench.writers", *words, name=side.label)["rounds"]
        for name, figure in writers.items():
            side.keep(name, figure)
    for side in order:
        rounds = side.ask("bench.engines", ENGINE_ROUNDS, name=side.label)["rounds"]
        for name in rounds[0]:
            side.keep(name, {"us": statistics.median(each[name] for each in rounds)})


def _load_both(order: tuple[run.Run, run.Run], name: str, asked: Load) -> None:
    for side in order:
        side.databases.settle()
        side.measure(name, side.running[PRODUCT], asked)


def rank(count: int) -> int:
    """How many ratios on either side the interval of the median leaves out.

    The median lies between the k-th smallest and the k-th largest of n independent values, unless
    fewer than k of them fall on one side: twice the lower tail of a binomial with p = 1/2.
    """
    tail, left_out = 0.0, 0
    for below in range(count // 2):
        tail += 2 * math.comb(count, below) / 2**count
        if tail > 1 - CONFIDENCE:
            break
        left_out = below
    return left_out


def compare(measure: Measure, old: Figures, new: Figures) -> Compared | None:
    """Hold one measure of both against each other, pair by pair; None where one has none."""
    found = (values(each, measure.figure, measure.metric) for each in (old, new))
    pairs = [pair for pair in zip(*found, strict=False) if all(pair)]
    if not pairs:
        return None
    ratios = sorted(old / new if measure.is_cost else new / old for old, new in pairs)
    out = rank(len(ratios))
    middle = statistics.median(ratios)
    return Compared(measure, len(ratios), middle, ratios[out], ratios[-1 - out])


def compare_all(old: Figures, new: Figures) -> list[Compared]:
    """Hold all measures that both have against each other."""
    found = (compare(measure, old, new) for measure in MEASURES)
    return [each for each in found if each]


def as_text(found: Sequence[Compared]) -> str:
    """A line for each measure: the median ratio, its interval, and whether that is worse."""
    rows = [["new / old, above 1 is better", "median", "interval", ""]]
    for each in found:
        interval = f"{each.least:.3f}-{each.most:.3f}"
        verdict = "WORSE" if each.worse else ""
        rows.append([each.measure.name, f"{each.median:.3f}", interval, verdict])
    return report.table(rows)
