"""`python -m bench.against COMMIT`: this checkout beside an earlier commit, by turns.

Both products run at the same time on one database server, each on a database of its own that its
own code has filled; one is asked, then the other, and who begins changes from pair to pair. What
is shown is the ratio of each pair, so that a machine that changes its pace does so for both.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import database, load, pairs, review, run, servers
from bench.load import Load, LoadError
from bench.names import CLOSED, HALF, HOT, PRODUCT, QUIET, SPREAD, key
from bench.places import RESULTS, ROOT, MissingError, program, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORSE: Final = 2
INTERRUPTED: Final = 130
PAIRS: Final = 10
SECONDS: Final = 0.8
OPEN_SECONDS: Final = 1.5
ENGINE_ROUNDS: Final = "3"


@dataclass(slots=True)
class Side:
    """One of both commits: its code, the Python that runs it, its own figures and server."""

    name: str
    folder: Path
    python: str
    made: run.Run
    server: servers.Server | None = None

    def ask(self, module: str, *words: str) -> str:
        """Run one of its measuring modules on its own database; gives what that prints."""
        around = surroundings(
            GATEHOUSE_DATABASE_URL=self.made.database.address(self.name),
            GATEHOUSE_SECRET_KEY=servers.secret_key(),
            GATEHOUSE_VAR=str(self.made.folder),
            GATEHOUSE_EXTERNAL_URL="https://127.0.0.1",
        )
        command = [self.python, "-m", module, *words]
        done = subprocess.run(  # noqa: S603 - our own words
            command, env=around, cwd=self.folder, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.decode()

    def subject(self) -> servers.Subject:
        """Its product, as it is served."""
        found = servers.product(self.name, self.made.secret, name=f"{PRODUCT} {self.name}")
        return replace(found, words=[self.python, *found.words[1:]], folder=self.folder)

    def measure(self, name: str, asked: Load) -> None:
        """Make one load and keep what it cost."""
        if self.server is None:
            raise LoadError(f"{self.name} is not running")
        print(f"{self.name:<4}", end="")
        self.made.measure(name, self.server, asked)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, keep. 0: nothing is worse; 1: it could not run; 2: something is worse."""
    options = _options(words)
    try:
        with _sides(options) as (old, new):
            for number in range(options.pairs):
                print(f"pair {number + 1} of {options.pairs}", flush=True)
                _pair((old, new) if number % 2 else (new, old))
    except KeyboardInterrupt:
        print("stopped; nothing was left running", file=sys.stderr)
        return INTERRUPTED
    except (LoadError, MissingError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    found = pairs.compare_all(old.made.figures, new.made.figures)
    print(f"\n{options.commit} beside {_here()}, {options.pairs} pairs\n")
    print(pairs.as_text(found))
    print(_save(options.commit, old, new, found))
    return WORSE if any(each.worse for each in found) else 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__)
    parser.add_argument("commit", help="what this checkout is compared with")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="how often each is asked")
    parser.add_argument("--sqlite", action="store_true", help="SQLite in place of PostgreSQL")
    return parser.parse_args(words)


@contextlib.contextmanager
def _sides(options: argparse.Namespace) -> Iterator[tuple[Side, Side]]:
    """Both products, started and warm; stopped at the end."""
    with contextlib.ExitStack() as stack:
        name = tempfile.TemporaryDirectory(prefix="gatehouse-bench-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(name))
        earlier = folder / "earlier"
        _unpack(options.commit, earlier)
        server: database.PostgreSQL | database.SQLite = (
            database.SQLite(folder)
            if options.sqlite
            else stack.enter_context(database.postgresql(folder / "postgresql"))
        )
        certificate = servers.make_certificate(folder)
        sides = []
        for label, checkout, python in (
            ("old", earlier, _python(earlier)),
            ("new", ROOT, sys.executable),
        ):
            made = run.Run(
                database=server,
                client=load.client(),
                certificate=certificate,
                folder=folder,
                extent=run.QUICK,
            )
            sides.append(Side(label, checkout, python, made))
        for side in sides:
            _start(side, stack)
        yield sides[0], sides[1]


def _start(side: Side, stack: contextlib.ExitStack) -> None:
    """Have its own code fill its database, then start it and warm it up."""
    made = side.made
    made.database.create(side.name)
    made.secret = json.loads(side.ask("bench.seed", "small"))["secret"]
    # What is measured without a server writes, too: not into the database that loads are held to.
    made.database.copy(side.name, f"{side.name}_served")
    subject = replace(side.subject(), database=f"{side.name}_served")
    side.server = stack.enter_context(run.start(made, subject))
    run.ready(made, side.server)


def _unpack(commit: str, folder: Path) -> None:
    """Put a commit's files into a folder; raises ``MissingError`` where there is no such commit."""
    git = [program("git"), "-C", str(ROOT), "archive", "--format=tar", commit]
    done = subprocess.run(git, capture_output=True, check=False)  # noqa: S603 - no shell, one commit
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


def _pair(order: tuple[Side, Side]) -> None:
    """Each load once for both, one directly after the other."""
    for label, quota in ((SPREAD, review.SPREAD), (HOT, review.HOT)):
        for side in order:
            asked = Load(namespaces=quota, seconds=SECONDS)
            side.measure(key(PRODUCT, label, CLOSED), asked)
    saturated = key(PRODUCT, SPREAD, CLOSED)
    half = min(side.made.figures[saturated][-1]["rps"] for side in order) / 2
    for label, rate in ((QUIET, run.QUIET_RATE), (HALF, half)):
        for side in order:
            asked = Load(connections=run.OPEN_CONNECTIONS, rate=rate, seconds=OPEN_SECONDS)
            side.made.database.settle()
            side.measure(key(PRODUCT, SPREAD, label), asked)
    for side in order:
        kind = side.made.database.kind
        _keep(side, "bench.writers", "1", str(SECONDS), kind, "usual")
    for side in order:
        _keep(side, "bench.engines", ENGINE_ROUNDS)


def _keep(side: Side, module: str, *words: str) -> None:
    """Keep the figures of a module that measures without a server: the median of its rounds."""
    rounds: list[dict[str, Any]] = json.loads(side.ask(module, *words))["rounds"]
    for name, last in rounds[-1].items():
        print(f"{side.name:<4}", end="")
        microseconds = isinstance(last, float) and statistics.median(each[name] for each in rounds)
        side.made.keep(name, {"us": microseconds} if microseconds else last)


def _here() -> str:
    """What this checkout is, in Git's words."""
    git = [program("git"), "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    return done.stdout.strip() or "this checkout"


def _save(commit: str, old: Side, new: Side, found: Sequence[pairs.Compared]) -> Path:
    RESULTS.mkdir(parents=True, exist_ok=True)
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = RESULTS / f"{moment}-against-{commit.replace('/', '-')}.json"
    ratios = {e.measure.name: [e.least, e.median, e.most] for e in found}
    text = {"ratios": ratios, "old": old.made.figures, "new": new.made.figures}
    path.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
