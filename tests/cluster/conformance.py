"""``python -m tests.cluster.conformance``: random cases, asked of API server and engine alike.

Every number of a run comes from one seed, which is printed. Differences are shrunk to the smallest
case that shows them, and written beside the tests that replay them.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import secrets
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.cluster.asking import Asking
from tests.cluster.binaries import Binaries, find
from tests.cluster.build import UNAVAILABLE, say
from tests.cluster.cases import (
    PRIORITIES,
    draw_before,
    draw_limited,
    draw_policies,
    draw_question,
)
from tests.cluster.golden import keep
from tests.cluster.questioning import Found, ask
from tests.cluster.servers import Options, cluster
from tests.cluster.shrinking import shrink
from tests.cluster.worlds import Barrier, World, prepare_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.cluster.cases import Case
    from tests.cluster.comparing import Verdict
    from tests.cluster.worlds import Observed

_QUESTIONS: Final = 20
_BATCH: Final = 25
_PER_SERVER: Final = 2500
_THREADS: Final = 6
_MAX_SHRUNK: Final = 10


@dataclass
class Tally:
    """What a run saw."""

    seed: int
    cases: int = 0
    seconds: float = 0.0
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    apart: collections.Counter[str] = field(default_factory=collections.Counter)
    differences: list[Found] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def add(self, case: Case, observed: Observed, verdict: Verdict) -> None:
        """Count one case."""
        self.cases += 1
        verb = "allowed" if observed.is_allowed else f"refused {observed.code}"
        self.kinds[f"{case.get('subResource') or _kind(case)} {case['operation']} {verb}"] += 1
        if verdict.by_order:
            self.kinds["agreed in another order of policies"] += 1
        if verdict.apart:
            self.apart[verdict.apart] += 1
        elif verdict.differences:
            self.differences.append(Found(case, observed, verdict))

    def lines(self) -> Iterator[str]:
        """The run in words."""
        yield f"seed {self.seed}: {self.cases} cases in {self.seconds:.0f} s"
        yield from (f"  {count:6} {name}" for name, count in sorted(self.kinds.items()))
        yield from (f"  {count:6} apart: {name}" for name, count in sorted(self.apart.items()))
        yield f"  {len(self.differences):6} differences"
        for found in self.differences[:_MAX_SHRUNK]:
            for mark, server, engine in found.verdict.differences:
                yield f"    {mark}\n      server: {server}\n      engine: {engine}"
        yield from (f"  kept {path}" for path in self.kept)


def _kind(case: Case) -> str:
    subject: dict[str, Any] = case.get("posted") or case["before"]
    return str(subject["kind"]).lower()


class _Server(NamedTuple):
    """How one of a run's API servers is set up."""

    limited: list[dict[str, Any]]
    default_priority: str


def _draw_server(random: Random, number: int) -> _Server:
    """The first has nothing but policies; others need covering quotas, or default a priority."""
    if number == 0:
        return _Server([], "")
    default = random.choice(["", "", *PRIORITIES])
    return _Server(draw_limited(random) if random.random() < 0.8 else [], default)


def run(
    binaries: Binaries, seed: int, cases: int, *, told: Callable[[str], None] = lambda _: None
) -> Tally:
    """Ask that many cases; the seed alone decides which. ``told`` hears how far it is."""
    tally, began = Tally(seed), time.monotonic()
    share = min(_PER_SERVER, max(1, cases // 4))
    for number in range(-(-cases // share)):
        random = Random(f"{seed}/{number}")  # noqa: S311 - repeatable on purpose
        server = _draw_server(random, number)
        with _started(binaries, server) as asking:
            wanted = min(share, cases - tally.cases)
            _run_server(asking, random, server, wanted, tally)
            _shrink(asking, server, tally)
        told(f"{tally.cases} of {cases} cases, {len(tally.differences)} differences")
    tally.seconds = time.monotonic() - began
    return tally


@contextlib.contextmanager
def _started(binaries: Binaries, server: _Server) -> Iterator[Asking]:
    more = ("--enable-priority-and-fairness=false", "--max-requests-inflight=0")
    options = Options(limited_resources=server.limited, more=more)
    with cluster(binaries, options) as made, contextlib.closing(Asking(made)) as asking:
        prepare_cluster(asking, default_priority=server.default_priority)
        yield asking


def _run_server(asking: Asking, random: Random, server: _Server, wanted: int, tally: Tally) -> None:
    """Ask one API server, a batch of namespaces at a time."""
    done, batch = 0, 0
    barrier = Barrier(asking)
    with ThreadPoolExecutor(_THREADS) as threads:
        while done < wanted:
            batch += 1
            seeds = [(batch, index, random.random()) for index in range(_BATCH)]
            worlds = list(threads.map(lambda drawn: _make(asking, *drawn), seeds))
            barrier.wait()
            for answers in threads.map(lambda pair: _question(server, *pair), worlds):
                # Cut where enough is asked, so that the count is the one asked for.
                for answer in answers[: wanted - done]:
                    tally.add(*answer)
                done += min(len(answers), wanted - done)


def _make(asking: Asking, batch: int, index: int, drawn: float) -> tuple[World, Random]:
    random = Random(drawn)  # noqa: S311 - repeatable on purpose
    world = World(asking, f"w-{batch}-{index}")
    before = draw_before(random)
    world.drawn = before
    world.make(draw_policies(random), list(before.values()))
    return world, random


def _question(
    server: _Server, world: World, random: Random
) -> list[tuple[Case, Observed, Verdict]]:
    found = []
    for number in range(_QUESTIONS):
        case = draw_question(random, world.drawn)
        case["name"], case["limitedResources"] = f"{world.name}-{number}", server.limited
        if case["operation"] == "CREATE" and not case["dryRun"]:
            case["posted"]["metadata"]["name"] += f"-{number}"
        answer = ask(world, case, server.default_priority)
        if answer:
            found.append(answer)
    return found


def _shrink(asking: Asking, server: _Server, tally: Tally) -> None:
    """Keep the smallest form of this server's differences, one for each mark and kind."""
    seen = set()
    for found in tally.differences:
        if found.case["limitedResources"] is not server.limited or len(seen) >= _MAX_SHRUNK:
            continue
        key = (_kind(found.case), tuple(each.mark for each in found.verdict.differences))
        if key in seen:
            continue
        seen.add(key)
        small = shrink(asking, found.case, server.default_priority)
        tally.kept.append(str(keep(*(small or found))))


def main(words: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code: 1 for differences, 3 where there is no API server."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.conformance", description=__doc__
    )
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    options = parser.parse_args(words)
    binaries = find()
    if binaries is None:
        say("NO API SERVER HERE: set KUBEBUILDER_ASSETS, or run python -m tests.cluster.build")
        return UNAVAILABLE
    say(f"conformance: {options.cases} cases of seed {options.seed}")
    tally = run(binaries, options.seed, options.cases, told=say)
    for line in tally.lines():
        say(line)
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
