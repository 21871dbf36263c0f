"""One run: what is started, the rounds of loads with their exactness checks, and what is kept."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import django
from django.core.management import call_command

from bench import database, figures, review, servers
from bench.figures import CLOSED, FEW, HALF, HOT, QUIET, SLOW, SPREAD, key
from bench.load import Answers, Load, LoadError
from bench.machine import ROOT, MissingError, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WARM_UP: Final = Load(connections=8, seconds=0.7)
QUIET_RATE: Final = 200.0
OPEN_CONNECTIONS: Final = 64
QUOTAS: Final = {SPREAD: review.SPREAD, HOT: review.HOT}
CONNECTIONS: Final = {CLOSED: 32, FEW: 8}
DECIDING: Final = {figures.ENGINE, figures.OPA_OFF, figures.OPA_ON}


class Extent(NamedTuple):
    """How much is measured: rounds, seconds of each load, and whether the long parts are in."""

    rounds: int
    seconds: float
    open_seconds: float
    full: bool = False


FULL_RUN: Final = Extent(rounds=3, seconds=2.0, open_seconds=5.0, full=True)
QUICK: Final = Extent(rounds=3, seconds=0.8, open_seconds=1.5)
TINY: Final = Extent(rounds=1, seconds=0.3, open_seconds=0.3)


@dataclass(slots=True)
class Run:
    """A run under way: its servers, and the figures so far.

    ``checkout`` has the code that is measured, ``python`` runs it.
    """

    databases: database.Databases
    certificate: Path
    folder: Path
    extent: Extent
    checkout: Path = ROOT
    python: str = sys.executable
    label: str = ""
    secret: str = ""
    figures: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    exact: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    running: dict[str, servers.Server] = field(default_factory=dict)

    def keep(self, name: str, figure: dict[str, float]) -> None:
        """Add one round's figure and show it."""
        self.figures.setdefault(name, []).append(figure)
        text = "  ".join(f"{metric} {value:,.4g}" for metric, value in figure.items())
        print(f"{self.label:<3} {name:<46} {text}", flush=True)

    def run(self, module: str, *words: str, name: str) -> str:
        """Run one of the measuring modules on a database; gives what it prints."""
        settings = servers.product_settings(self.folder, self.databases.address(name))
        done = subprocess.run(  # noqa: S603 - our own words
            [self.python, "-m", module, *words],
            env=surroundings(**settings),
            cwd=self.checkout,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout

    def ask(self, module: str, *words: str, name: str) -> Any:
        """Run one that prints JSON."""
        return json.loads(self.run(module, *words, name=name))

    def seed(self, size: str, name: str) -> None:
        """Fill a database."""
        self.secret = self.ask("bench.seed", size, name=name).get("secret") or self.secret

    @contextlib.contextmanager
    def start(self, subject: servers.Subject) -> Iterator[servers.Server]:
        """Start a subject, wait until it answers, see that it decides, warm it up."""
        address = self.databases.address(subject.database) if subject.database else ""
        with servers.started(
            subject, folder=self.folder, certificate=self.certificate, address=address
        ) as server:
            servers.wait_until_it_answers(server)
            if subject.database or subject.name in DECIDING:
                verdicts = servers.verdicts(server, servers.probes())
                if [allowed for allowed, *_ in verdicts[:3]] != [True, False, False]:
                    raise LoadError(f"{subject.name} decides otherwise: {verdicts}")
            with contextlib.suppress(LoadError):
                server.load(WARM_UP)
            yield server

    def measure(self, name: str, server: servers.Server, asked: Load) -> Answers:
        """Make one load, see that it was counted exactly, keep what it cost."""
        subject = server.subject
        before = subject.database and database.standing(self.databases, subject.database)
        cpu, database_cpu = server.cpu(), self.databases.cpu()
        answers = server.load(asked)
        cpu, database_cpu = server.cpu() - cpu, self.databases.cpu() - database_cpu
        figure = {
            "rps": answers.rps,
            "p50": answers.percentile(0.5),
            "p99": answers.percentile(0.99),
            "cpu_us": cpu / answers.answered * 1e6,
            "memory_mb": server.memory() / 1e6,
            "client": answers.client_cpu / answers.seconds,
        }
        if before:
            after = database.standing(self.databases, subject.database)
            if problems := mistakes(answers, before, after):
                raise LoadError(f"{name}: {'; '.join(problems)}")
            self.exact.append(f"{name}: {answers.answered} answers, {answers.allowed} granted")
            figure["database_us"] = database_cpu / answers.answered * 1e6
        self.keep(name, figure)
        return answers


def mistakes(answers: Answers, before: database.Standing, after: database.Standing) -> list[str]:
    """Where answers, record and ledger differ after a validating load; empty when exact."""
    used = sum(after.used.values()) - sum(before.used.values())
    counts = (
        ("answers and rows on record", answers.answered, after.rows - before.rows),
        ("granted and charges", answers.allowed, after.charges - before.charges),
        ("granted and pods used", answers.allowed, used),
    )
    over = [name for name, pods in after.used.items() if pods > after.hard.get(name, pods)]
    found = [f"{name}: {wanted} and {seen}" for name, wanted, seen in counts if wanted != seen]
    return [*found, *(f"above the quota: {name}" for name in over)]


def guarded(work: Callable[[], int]) -> int:
    """Run it and give its exit code: 1 where it cannot run, 130 where it is interrupted.

    Whatever ends it, what it started is stopped; a second signal does not disturb that.
    """

    def stop(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        return work()
    except KeyboardInterrupt:
        print("stopped; nothing was left running", file=sys.stderr)
        return 130
    except (LoadError, MissingError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def prepared(extent: Extent, *, sqlite: bool = False) -> Iterator[Run]:
    """A folder, a database server and a certificate that last as long as the run."""
    with database.started(sqlite=sqlite) as (databases, folder):
        made = Run(databases, servers.make_certificate(folder), folder, extent)
        databases.clone(database.EMPTY, "seeded")
        made.seed("small", "seeded")
        yield made


def on_empty_database(module: str, *given: Any, sqlite: bool = False) -> int:
    """Set Django up on a database of its own, then call ``measure`` of a module that needs it."""
    with database.started(sqlite=sqlite) as (databases, folder):
        settings = servers.product_settings(folder / "var", databases.address("postgres"))
        # Clusters that are followed are on this machine.
        settings["GATEHOUSE_CLUSTER_ADDRESSES"] = "127.0.0.0/8"
        os.environ |= surroundings(**settings, DJANGO_SETTINGS_MODULE="portal.settings")
        django.setup()
        call_command("migrate", interactive=False, verbosity=0)
        return int(importlib.import_module(module).measure(*given))


@contextlib.contextmanager
def all_started(run: Run) -> Iterator[None]:
    """Start all subjects of the rounds, each on a database of its own; stop all at the end."""
    found = [*servers.floors(), servers.product("product", run.secret)]
    if run.extent.full:
        strangers, skipped = servers.peers()
        found = [*strangers, *found]
        run.skipped |= skipped
    else:
        found = [each for each in found if each.name not in {figures.RAW, figures.ENGINE}]
    found += servers.baselines(run.secret)
    with contextlib.ExitStack() as stack:
        for subject in found:
            if subject.database:
                run.databases.clone("seeded", subject.database)
            run.running[subject.name] = stack.enter_context(run.start(subject))
        bodies = servers.probes()
        wanted = servers.verdicts(run.running[figures.PRODUCT], bodies)
        for name in {figures.LOADED, figures.CACHED} & run.running.keys():
            if servers.verdicts(run.running[name], bodies) != wanted:
                raise LoadError(f"{name} does not decide as the product does")
        yield


def measure_all(run: Run) -> None:
    """Everything that belongs to the run's extent."""
    in_processes(run)
    with all_started(run):
        for number in range(run.extent.rounds):
            print(f"round {number + 1} of {run.extent.rounds}", flush=True)
            closed_loops(run, number)
            open_loops(run)
            if run.extent.full and run.databases.kind == "postgresql":
                slow_commits(run)
        tight(run)
        if run.extent.full:
            large(run)
        sizes(run)


def closed_loops(run: Run, number: int) -> None:
    """One round of throughput: every subject, with many and with few connections.

    Who begins changes from round to round; the product stays beside its floor.
    """
    order = list(run.running)
    for connections in (CLOSED, FEW) if run.extent.full else (CLOSED,):
        for name in order[number:] + order[:number]:
            server = run.running[name]
            for quota in QUOTAS if server.subject.database else ("",):
                asked = Load(
                    namespaces=QUOTAS.get(quota, review.SPREAD),
                    connections=CONNECTIONS[connections],
                    seconds=run.extent.seconds,
                )
                run.measure(key(name, *filter(None, [quota]), connections), server, asked)


def open_loops(run: Run) -> None:
    """One round of latency: the product and its floor, quiet and at half of their saturation."""
    for subject, *words in ((figures.LEAN,), (figures.PRODUCT, SPREAD)):
        half = run.figures[key(subject, *words, CLOSED)][-1]["rps"] / 2
        for label, rate in ((QUIET, QUIET_RATE), (HALF, half)):
            asked = Load(connections=OPEN_CONNECTIONS, rate=rate, seconds=run.extent.open_seconds)
            run.databases.settle()
            run.measure(key(subject, *words, label), run.running[subject], asked)


def slow_commits(run: Run) -> None:
    """One round with slow commits, on one hot quota."""
    with run.databases.slow_commits():
        for name in (figures.PRODUCT, figures.CACHED):
            asked = Load(namespaces=review.HOT, seconds=run.extent.seconds)
            run.measure(key(name, HOT, SLOW), run.running[name], asked)


def tight(run: Run) -> None:
    """Many requests for 900 places: exactly those are granted, however they compete."""
    limit = 3000 if run.extent.full else 1500
    asked = Load(namespaces=review.TIGHT, seconds=60, limit=limit)
    server = run.running[figures.PRODUCT]
    answers = run.measure(key(figures.PRODUCT, "900 places"), server, asked)
    places = len(review.TIGHT) * review.TIGHT_PODS
    if answers.allowed != places:
        raise LoadError(f"{answers.allowed} were granted, there were {places} places")
    run.exact.append(f"{answers.answered} requests for {places} places: all of these granted")


def in_processes(run: Run) -> None:
    """What is measured without a server: the engine beside others, the writer beside its floors.

    The writer twice where a disk can be made slow.
    """
    rounds = str(max(3, run.extent.rounds))
    run.databases.clone("seeded", "writers")
    found = run.ask("bench.engines", rounds, name="writers")
    run.skipped |= found["skipped"]
    for name, us in (pair for each in found["rounds"] for pair in each.items()):
        run.keep(name, {"us": us})
    words = ("bench.writers", rounds, str(run.extent.seconds), run.databases.kind)
    for each in run.ask(*words, "usual", name="writers")["rounds"]:
        for name, figure in each.items():
            run.keep(name, figure)
    if run.extent.full and run.databases.kind == "postgresql":
        with run.databases.slow_commits():
            slow = run.ask(*words, "slow", name="writers")["rounds"]
        for name, figure in (pair for each in slow for pair in each.items()):
            run.keep(key(name, SLOW), figure)


def large(run: Run) -> None:
    """50,000 policies: building them into memory, and deciding beside them."""
    run.databases.clone("seeded", "large")
    run.seed("large", "large")
    few, many = (run.ask("bench.seed", "cost", name=name) for name in ("writers", "large"))
    policies = many["policies"] - few["policies"]
    costs = {name: many[name] for name in ("build_s", "build_cpu_s", "policies")}
    per_policy = max(0.0, (many["grown"] - few["grown"]) / policies)
    run.keep(figures.LARGE, {**costs, "policy_bytes": per_policy})
    usual = Load(seconds=run.extent.seconds)
    with run.start(servers.product("large", run.secret, name=figures.LARGE)) as server:
        for _ in range(run.extent.rounds):
            run.measure(figures.BESIDE, run.running[figures.PRODUCT], usual)
            run.measure(key(figures.LARGE, SPREAD, CLOSED), server, usual)


def sizes(run: Run) -> None:
    """Bytes of a row of the record, and of a process that knows few policies."""
    rows = database.standing(run.databases, "product").rows
    size = run.databases.record_size("product") / rows
    worker = run.running[figures.PRODUCT].memory() / servers.WORKERS
    run.keep(figures.PRODUCT, {"row_bytes": size, "worker_bytes": worker})
