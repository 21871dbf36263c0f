"""``python -m tests.cluster.conformance``: random cases, evaluated by API server and engine.

One seed, which is printed, determines every number of a run. Each difference is reduced to the
smallest case that shows it, and written beside the tests that replay it.
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
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.api_client import ApiClient
from tests.cluster.binaries import DEFAULT, RELEASES, Binaries, find
from tests.cluster.build import UNAVAILABLE, say
from tests.cluster.case_generator import CaseGenerator, Setting
from tests.cluster.cases import draw_before
from tests.cluster.evaluation import Found, ask
from tests.cluster.golden import keep
from tests.cluster.reduction import shrink
from tests.cluster.rules import PRIORITIES, draw_limited, draw_policies
from tests.cluster.servers import Options, cluster
from tests.cluster.worlds import Barrier, World, prepare_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.cluster.cases import Case
    from tests.cluster.comparison import Verdict
    from tests.cluster.worlds import Observed

_QUESTIONS: Final = 20
_BATCH: Final = 25
_PER_SERVER: Final = 2500
_THREADS: Final = 6
_MAX_SHRUNK: Final = 10
_KINDS: Final = {"Pod": "pod", "PersistentVolumeClaim": "claim", "Service": "service"}


@dataclass
class Tally:
    """The counts of a run."""

    seed: int
    cases: int = 0
    seconds: float = 0.0
    verdicts: dict[str, collections.Counter[str]] = field(default_factory=dict)
    reasons: collections.Counter[str] = field(default_factory=collections.Counter)
    apart: collections.Counter[str] = field(default_factory=collections.Counter)
    by_order: int = 0
    differences: list[Found] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def add(self, case: Case, observed: Observed, verdict: Verdict) -> None:
        """Count one case."""
        self.cases += 1
        self.by_order += verdict.by_order
        if verdict.apart:
            self.apart[verdict.apart] += 1
            return
        counted = self.verdicts.setdefault(_kind(case), collections.Counter())
        counted["allowed" if observed.is_allowed else "refused"] += 1
        counted[case.get("near", "")] += 1
        self.reasons[f"{_kind(case)}: {verdict.reason or 'allowed'}"] += 1
        if verdict.differences:
            self.differences.append(Found(case, observed, verdict))

    def shares(self) -> dict[str, tuple[float, float]]:
        """The numbers of allowed and refused cases of each kind, of those that count."""
        return {
            kind: (
                counted["allowed"] / (total := counted["allowed"] + counted["refused"]),
                counted["refused"] / total,
            )
            for kind, counted in self.verdicts.items()
        }

    def lines(self) -> Iterator[str]:
        """The run as text."""
        yield f"seed {self.seed}: {self.cases} cases in {self.seconds:.0f} s"
        yield "  allowed refused | at a bound, one beyond"
        for kind, counted in sorted(self.verdicts.items()):
            shown = [counted[key] for key in ("allowed", "refused", "at", "over")]
            share = self.shares()[kind][0]
            yield "  {:7} {:7} | {:6} {:6}  {} ({:.0%} allowed)".format(*shown, kind, share)
        yield from (f"  {count:6} {name}" for name, count in sorted(self.reasons.items()))
        yield f"  {self.by_order:6} agreed in another order of policies"
        yield from (f"  {count:6} apart: {name}" for name, count in sorted(self.apart.items()))
        yield f"  {len(self.differences):6} differences"
        for found in self.differences[:_MAX_SHRUNK]:
            for mark, server, engine in found.verdict.differences:
                yield f"    {mark}\n      server: {server}\n      engine: {engine}"
        yield from (f"  kept {path}" for path in self.kept)


def _kind(case: Case) -> str:
    subject: dict[str, Any] = case.get("posted") or case["before"]
    what = case.get("subResource") or _KINDS.get(subject["kind"], "counted object")
    return f"{case['operation']} {what}"


def _draw_setting(random: Random, number: int, version: str) -> Setting:
    """The first has only policies; others require covering quotas, or default a priority."""
    if number == 0:
        return Setting([], "", version)
    default = random.choice(["", "", *PRIORITIES])
    return Setting(draw_limited(random) if random.random() < 0.8 else [], default, version)


def run(
    binaries: Binaries,
    seed: int,
    cases: int,
    *,
    version: str = DEFAULT,
    report: Callable[[str], None] = lambda _: None,
) -> Tally:
    """Evaluate that many cases; only the seed determines them. ``report`` gets the progress."""
    tally, began = Tally(seed), time.monotonic()
    share = min(_PER_SERVER, max(1, cases // 4))
    for number in range(-(-cases // share)):
        random = Random(f"{seed}/{number}")  # noqa: S311 - repeatable on purpose
        setting = _draw_setting(random, number, version)
        with _started(binaries, setting) as api:
            wanted = min(share, cases - tally.cases)
            _run_server(api, random, setting, wanted, tally)
            _shrink(api, setting, tally)
        report(f"{tally.cases} of {cases} cases, {len(tally.differences)} differences")
    tally.seconds = time.monotonic() - began
    return tally


@contextlib.contextmanager
def _started(binaries: Binaries, setting: Setting) -> Iterator[ApiClient]:
    more = ("--enable-priority-and-fairness=false", "--max-requests-inflight=0")
    options = Options(limited_resources=setting.limited, more=more)
    with cluster(binaries, options) as made, contextlib.closing(ApiClient(made)) as api:
        prepare_cluster(api, default_priority=setting.default_priority)
        yield api


def _run_server(
    api: ApiClient, random: Random, setting: Setting, wanted: int, tally: Tally
) -> None:
    """Evaluate cases on one API server, a batch of namespaces at a time."""
    done, batch = 0, 0
    barrier = Barrier(api)
    with ThreadPoolExecutor(_THREADS) as threads:
        while done < wanted:
            batch += 1
            seeds = [(batch, index, random.random()) for index in range(_BATCH)]
            generators = list(threads.map(lambda drawn: _make(api, setting, *drawn), seeds))
            barrier.wait()
            for answers in threads.map(partial(_evaluate_cases, setting), generators):
                # Stop at exactly the requested number.
                for answer in answers[: wanted - done]:
                    tally.add(*answer)
                done += min(len(answers), wanted - done)


def _make(api: ApiClient, setting: Setting, batch: int, index: int, drawn: float) -> CaseGenerator:
    random = Random(drawn)  # noqa: S311 - repeatable on purpose
    world = World(api, f"w-{batch}-{index}")
    before = draw_before(random)
    world.drawn = before
    world.make(draw_policies(random, setting.limited), list(before.values()))
    return CaseGenerator(world, random, setting)


def _evaluate_cases(
    setting: Setting, generator: CaseGenerator
) -> list[tuple[Case, Observed, Verdict]]:
    """Evaluate a namespace's cases, until it has no more."""
    found: list[tuple[Case, Observed, Verdict]] = []
    while len(found) < _QUESTIONS:
        case = generator.next_case()
        if case is None:
            break
        case |= {"limitedResources": setting.limited, "kubernetesVersion": setting.version}
        metadata = case.get("posted", {}).get("metadata", {})
        if "name" in metadata and not case["dryRun"]:
            metadata["name"] += f"-{len(found)}"
        answer = ask(generator.world, case, setting.default_priority)
        assert answer is not None
        found.append(answer)
    return found


def _shrink(api: ApiClient, setting: Setting, tally: Tally) -> None:
    """Keep the smallest form of this server's differences, one for each property and kind."""
    seen = set()
    for found in tally.differences:
        if found.case["limitedResources"] is not setting.limited or len(seen) >= _MAX_SHRUNK:
            continue
        key = (_kind(found.case), tuple(each.mark for each in found.verdict.differences))
        if key in seen:
            continue
        seen.add(key)
        small = shrink(api, found.case, setting.default_priority)
        tally.kept.append(str(keep(*(small or found))))


def main(words: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code: 1 for differences, 3 without an API server."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.conformance", description=__doc__
    )
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    parser.add_argument("--versions", default=DEFAULT, help=f"of {' '.join(RELEASES)}")
    options = parser.parse_args(words)
    versions = options.versions.split()
    if not versions or not set(versions) <= RELEASES.keys():
        parser.error(f"--versions: give some of {' '.join(RELEASES)}")
    return max([_run_version(each, options.seed, options.cases) for each in versions])


def _run_version(version: str, seed: int, cases: int) -> int:
    binaries = find(version)
    if binaries is None:
        say(f"NO API SERVER {version} HERE: run python -m tests.cluster.build {version}")
        return UNAVAILABLE
    say(f"conformance with {RELEASES[version]}: {cases} cases of seed {seed}")
    tally = run(binaries, seed, cases, version=version, report=say)
    for line in tally.lines():
        say(line)
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
