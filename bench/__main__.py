"""`python -m bench`: measure, print, keep. See docs/explanation/performance.md."""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import database, environment, load, parts, profile, report, run, scale, servers
from bench.places import RESULTS, MissingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

MISSED: Final = 2
INTERRUPTED: Final = 130
EXTENTS: Final = {"full": run.FULL, "quick": run.QUICK, "tiny": run.TINY}


def main(words: Sequence[str]) -> int:
    """Run what is asked for. 0: done; 1: failed or not exact; 2: a goal was missed."""
    options = _options(words)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        return _run(options)
    except KeyboardInterrupt:
        print("stopped; nothing was left running", file=sys.stderr)
        return INTERRUPTED
    except (load.LoadError, MissingError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def _stop(_number: int, _frame: FrameType | None) -> None:
    _tidy_undisturbed()
    raise KeyboardInterrupt


def _tidy_undisturbed() -> None:
    """From here on a signal ends nothing: what was started is being stopped anyway."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", dest="extent", action="store_const", const="quick")
    parser.add_argument("--tiny", dest="extent", action="store_const", const="tiny")
    parser.add_argument("--sqlite", action="store_true", help="SQLite in place of PostgreSQL")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    parser.add_argument("--build-peers", action="store_true", help="build OPA's server, and stop")
    parser.add_argument(
        "--write-docs", action="store_true", help="put the last full run into the pages, and stop"
    )
    parser.set_defaults(extent="full")
    return parser.parse_args(words)


def _run(options: argparse.Namespace) -> int:
    if options.build_peers:
        print(servers.build_opa())
        return 0
    if options.write_docs:
        return _write_docs()
    with _surroundings(options) as made:
        if options.profile:
            profile.measure(made)
            return 0
        found = _measure(made)
    print(report.as_text(found))
    print(report.save(found, name=_name(options)))
    return MISSED if found.failed else 0


def _name(options: argparse.Namespace) -> str:
    return f"{options.extent}-{'sqlite' if options.sqlite else 'postgresql'}"


@contextlib.contextmanager
def _surroundings(options: argparse.Namespace) -> Iterator[run.Run]:
    """A folder, a database server and a certificate that last as long as the run."""
    with contextlib.ExitStack() as stack:
        name = tempfile.TemporaryDirectory(prefix="gatehouse-bench-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(name))
        server: database.PostgreSQL | database.SQLite = (
            database.SQLite(folder)
            if options.sqlite
            else stack.enter_context(database.postgresql(folder / "postgresql"))
        )
        made = run.Run(
            database=server,
            client=load.client(),
            certificate=servers.make_certificate(folder),
            folder=folder,
            extent=EXTENTS[options.extent],
        )
        server.create("seeded")
        made.secret = run.seed(made, "small", "seeded")["secret"]
        stack.callback(_tidy_undisturbed)
        yield made


def _measure(made: run.Run) -> report.Report:
    header = environment.describe(made.folder, made.database, made.client.name)
    for name, value in header.items():
        print(f"{name}: {value}")
    parts.engines(made)
    parts.writers(made)
    with run.all_started(made):
        for number in range(made.extent.rounds):
            print(f"round {number + 1} of {made.extent.rounds}", flush=True)
            run.closed_loops(made, number)
            run.open_loops(made)
            if made.extent.full and made.database.kind == "postgresql":
                run.slow_commits(made)
        run.tight(made)
        if made.extent.full:
            parts.large(made)
        parts.sizes(made)
    return report.Report(header, made.figures, made.exact, made.skipped)


def _write_docs() -> int:
    path = RESULTS / "latest-full-postgresql.json"
    if not path.exists():
        raise MissingError("there is no full run yet: run python -m bench first")
    found = report.load_report(path)
    report.write_between(report.PAGE, "bench", report.as_markdown(found))
    report.write_between(report.SCALE, "bench", scale.as_markdown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
