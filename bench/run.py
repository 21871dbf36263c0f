"""One run: what is started, in which order it is asked, and what is kept of it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bench import database, names, review, servers
from bench.load import Answers, Load, LoadError
from bench.names import CLOSED, FEW, HALF, HOT, QUIET, SLOW, SPREAD, key
from bench.places import ENGINES, ROOT, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.load import Client

WARM_UP: Final = Load(connections=8, seconds=0.7)
QUIET_RATE: Final = 200.0
OPEN_CONNECTIONS: Final = 64
QUOTAS: Final = {SPREAD: review.SPREAD, HOT: review.HOT}
CONNECTIONS: Final = {CLOSED: 32, FEW: 8}
SLOW_COMMITS: Final = {"commit_delay": "2000", "commit_siblings": "0"}
BASELINES: Final = {names.LOADED: "loaded", names.CACHED: "cached"}
ORDER: Final = (
    names.RAW,
    names.GO,
    names.OPA_OFF,
    names.OPA_ON,
    names.ENGINE,
    names.DEFAULT,
    names.LEAN,
    names.PRODUCT,
    names.LOADED,
    names.CACHED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much is measured: rounds, seconds of each load, and whether the long parts are in."""

    rounds: int
    seconds: float
    open_seconds: float
    full: bool
    baselines: bool = True

    @property
    def tight_requests(self) -> int:
        """How many requests compete for the 900 places of the tight namespaces."""
        return 3000 if self.full else 1500


FULL: Final = Extent(rounds=3, seconds=2.0, open_seconds=5.0, full=True)
QUICK: Final = Extent(rounds=3, seconds=0.8, open_seconds=1.5, full=False)
TINY: Final = Extent(rounds=1, seconds=0.3, open_seconds=0.3, full=False, baselines=False)


@dataclass(slots=True)
class Run:
    """A run under way: its servers, and the figures so far."""

    database: database.Server
    client: Client
    certificate: servers.Certificate
    folder: Path
    extent: Extent
    secret: str = ""
    figures: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    exact: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    running: dict[str, servers.Server] = field(default_factory=dict)

    def keep(self, name: str, figure: dict[str, float]) -> None:
        """Add one round's figure and show it."""
        self.figures.setdefault(name, []).append(figure)
        text = "  ".join(f"{metric} {value:,.4g}" for metric, value in figure.items())
        print(f"  {name:<46} {text}", flush=True)

    def measure(self, name: str, server: servers.Server, load: Load) -> Answers:
        """Make one load, see that it was counted exactly, keep what it cost."""
        subject = server.subject
        before = self._standing(subject)
        cpu, database_cpu = server.cpu(), self.database.cpu()
        answers = self.client.make(
            load, address=server.address, path=subject.path, certificate=self.certificate.file
        )
        cpu, database_cpu = server.cpu() - cpu, self.database.cpu() - database_cpu
        self._expect_exact(name, answers, before, self._standing(subject))
        figure = {
            "rps": answers.rps,
            "p50": answers.latency_ms["p50"],
            "p99": answers.latency_ms["p99"],
            "cpu_us": cpu / answers.answered * 1e6,
            "rss_mb": sum(stat.resident for stat in server.workers()) / 1e6,
            "client": answers.client_share,
        }
        if subject.database:
            figure["database_us"] = database_cpu / answers.answered * 1e6
        self.keep(name, figure)
        return answers

    def _standing(self, subject: servers.Subject) -> database.Standing | None:
        if not subject.database:
            return None
        return database.standing(self.database, subject.database)

    def _expect_exact(
        self,
        name: str,
        answers: Answers,
        before: database.Standing | None,
        after: database.Standing | None,
    ) -> None:
        if before is None or after is None:
            return
        problems = mistakes(answers, before, after)
        if problems:
            raise LoadError(f"{name}: {'; '.join(problems)}")
        self.exact.append(f"{name}: {answers.answered} answers, {answers.allowed} granted")


def mistakes(answers: Answers, before: database.Standing, after: database.Standing) -> list[str]:
    """Where answers, record and ledger differ after a validating load; empty when exact."""
    found = []
    rows, charges = after.rows - before.rows, after.charges - before.charges
    used = sum(after.used.values()) - sum(before.used.values())
    if rows != answers.answered:
        found.append(f"{answers.answered} answers, {rows} rows on record")
    if charges != answers.allowed:
        found.append(f"{answers.allowed} granted, {charges} charges")
    if used != answers.allowed:
        found.append(f"{answers.allowed} granted, {used} more pods used")
    over = [name for name, pods in after.used.items() if pods > after.hard.get(name, pods)]
    if over:
        found.append(f"above the quota: {', '.join(over)}")
    return found


def seed(run: Run, size: str, name: str) -> dict[str, Any]:
    """Fill a database in a process of its own."""
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "bench.seed", size],
        env=_django(run, name),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ask_process(run: Run, module: str, *words: str, name: str = "") -> dict[str, Any]:
    """Run one of our measuring modules in a process of its own; gives the JSON it prints."""
    around = _django(run, name) if name else {**surroundings(), "PYTHONPATH": str(ENGINES)}
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", module, *words],
        env=around,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def tell_process(run: Run, module: str, *words: str, name: str) -> None:
    """Run one of our modules that prints for people, on a database."""
    words = (sys.executable, "-m", module, *words)
    subprocess.run(words, env=_django(run, name), cwd=ROOT, check=True)  # noqa: S603 - our own words


def _django(run: Run, name: str) -> dict[str, str]:
    return surroundings(
        GATEHOUSE_DATABASE_URL=run.database.address(name),
        GATEHOUSE_SECRET_KEY=servers.secret_key(),
        GATEHOUSE_VAR=str(run.folder),
        GATEHOUSE_EXTERNAL_URL="https://127.0.0.1",
    )


def subjects(run: Run) -> list[servers.Subject]:
    """What is started for the rounds; each that keeps something on a database of its own."""
    found = servers.floors()
    if not run.extent.full:
        found = [subject for subject in found if subject.name in (names.LEAN, names.DEFAULT)]
    found.append(servers.product("product", run.secret))
    if run.extent.baselines:
        found += [servers.baseline(form, form, run.secret) for form in BASELINES.values()]
    if run.extent.full:
        strangers, skipped = servers.peers()
        found += strangers
        run.skipped |= skipped
    for subject in found:
        if subject.database:
            run.database.copy("seeded", subject.database)
    return found


@contextlib.contextmanager
def all_started(run: Run) -> Any:
    """Start all subjects, wait until each answers rightly, warm them up; stop all at the end."""
    with contextlib.ExitStack() as stack:
        for subject in subjects(run):
            run.running[subject.name] = stack.enter_context(start(run, subject))
        for server in run.running.values():
            ready(run, server)
        for name in BASELINES.keys() & run.running.keys():
            servers.check_same_verdicts(run.running[names.PRODUCT], run.running[name])
        yield
        run.running.clear()


def start(run: Run, subject: servers.Subject) -> Any:
    """Start one subject."""
    address = run.database.address(subject.database) if subject.database else ""
    return servers.started(subject, folder=run.folder, certificate=run.certificate, address=address)


def ready(run: Run, server: servers.Server) -> None:
    """Wait until it answers, see that it decides, warm it up."""
    servers.wait_until_it_answers(server)
    if server.subject.name not in {names.RAW, names.LEAN, names.DEFAULT, names.GO}:
        servers.check_verdicts(server)
    with contextlib.suppress(LoadError):
        run.client.make(
            WARM_UP,
            address=server.address,
            path=server.subject.path,
            certificate=run.certificate.file,
        )


def closed_loops(run: Run, number: int) -> None:
    """One round of throughput: every subject, with many and with few connections.

    Who begins changes from round to round; the product stays beside its floor.
    """
    loads = (CLOSED, FEW) if run.extent.full else (CLOSED,)
    order = sorted(run.running, key=ORDER.index)
    order = order[number:] + order[:number]
    for words in loads:
        for name in order:
            server = run.running[name]
            quotas: Iterable[str] = QUOTAS if server.subject.database else ("",)
            for quota in quotas:
                load = Load(
                    namespaces=QUOTAS.get(quota, review.SPREAD),
                    connections=CONNECTIONS[words],
                    seconds=run.extent.seconds,
                )
                run.measure(key(name, *filter(None, (quota,)), words), server, load)


def open_loops(run: Run) -> None:
    """One round of latency: the product and its floor, quiet and at half of their saturation."""
    compared = {names.LEAN: key(names.LEAN, CLOSED), names.PRODUCT: FULL_KEY}
    for name, saturated in compared.items():
        words = (name, SPREAD) if name == names.PRODUCT else (name,)
        half = run.figures[saturated][-1]["rps"] / 2
        for label, rate in ((QUIET, QUIET_RATE), (HALF, half)):
            load = Load(connections=OPEN_CONNECTIONS, rate=rate, seconds=run.extent.open_seconds)
            run.database.settle()
            run.measure(key(*words, label), run.running[name], load)


FULL_KEY: Final = key(names.PRODUCT, SPREAD, CLOSED)


def slow_commits(run: Run) -> None:
    """One round with a disk that takes 2 ms for each commit, on one hot quota."""
    run.database.configure(SLOW_COMMITS)
    try:
        for name in (names.PRODUCT, names.CACHED):
            load = Load(namespaces=review.HOT, seconds=run.extent.seconds)
            run.measure(key(name, HOT, SLOW), run.running[name], load)
    finally:
        run.database.configure(dict.fromkeys(SLOW_COMMITS))


def tight(run: Run) -> None:
    """Many requests for 900 places: exactly those are granted, however they compete."""
    load = Load(namespaces=review.TIGHT, seconds=60, limit=run.extent.tight_requests)
    server = run.running[names.PRODUCT]
    answers = run.measure(key(names.PRODUCT, "900 places"), server, load)
    places = len(review.TIGHT) * review.TIGHT_PODS
    granted = answers.allowed
    if granted > places or (answers.answered >= load.limit and granted != places):
        raise LoadError(f"{granted} were granted, there were {places} places")
    run.exact.append(f"{answers.answered} requests for {places} places: {granted} granted")
