"""Plants known faults, one at a time, each of which must fail a test: ``python -m tests.mutants``.

    python -m tests.mutants                       all of tests/mutants.toml
    python -m tests.mutants "drop the lock"       one of them
    python -m tests.mutants --write               and put the table into docs/explanation/testing.md

The faults go into a copy of the last commit in a temporary folder, never into the checkout.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LIST: Final = ROOT / "tests" / "mutants.toml"
PAGE: Final = ROOT / "docs" / "explanation" / "testing.md"
MARKS: Final = ("<!-- mutants: begin -->\n", "<!-- mutants: end -->")
PATIENCE: Final = 300  # seconds; a fault may make a test hang, which counts as detected
_FAILED: Final = 1  # pytest's exit code when tests ran and some failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault: the replaced text of a file, and the tests one of which must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    postgres: bool = False

    def plant(self, tree: Path) -> str:
        """Plant the fault in a tree; returns the original text of the file."""
        path = tree / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.name}: {self.file} no longer contains this text"
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
        return text


def read_mutants() -> list[Mutant]:
    """The list, in its order."""
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def copy_commit(target: Path) -> None:
    """Copy the last commit: the checkout may contain unfinished edits."""
    archive = subprocess.run(
        ["git", "archive", "HEAD"],  # noqa: S607 - found on the path
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(target, filter="data")


def run_tests(tree: Path, tests: tuple[str, ...], *, postgres: bool) -> int:
    """Run tests of a tree; returns pytest's exit code, or -1 after a timeout."""
    # -B and no cache: bytecode from before the fault must not be used.
    words = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    words += ["-p", "no:randomly", *tests]
    if postgres:
        words = [sys.executable, ".ci/with_postgres.py", *words]
    around = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            words, cwd=tree, env=around, capture_output=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return -1
    if done.returncode not in (0, _FAILED):
        sys.stderr.write(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
    return done.returncode


def judge(tree: Path, mutant: Mutant) -> str:
    """Plant one fault, run its tests, remove it again."""
    text = mutant.plant(tree)
    try:
        code = run_tests(tree, mutant.tests, postgres=mutant.postgres)
    finally:
        (tree / mutant.file).write_text(text, encoding="utf-8")
    return {0: "SURVIVED", _FAILED: "found", -1: "found (hangs)"}.get(code, "not tried")


def sound(tree: Path, mutants: list[Mutant]) -> bool:
    """Whether the tests pass without any fault; otherwise they prove nothing."""
    for tests, postgres in dict.fromkeys((m.tests, m.postgres) for m in mutants):
        if run_tests(tree, tests, postgres=postgres) != 0:
            sys.stderr.write(f"fails without a fault: {' '.join(tests)}\n")
            return False
    return True


def write_page(results: dict[Mutant, str]) -> None:
    """Put the table between its marks."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    tail = rest.partition(MARKS[1])[2]
    lines = ["| fault | where | result |", "|---|---|---|"]
    lines += [f"| {m.name} | `{m.file}` | {result} |" for m, result in results.items()]
    PAGE.write_text(
        head + MARKS[0] + "\n" + "\n".join(lines) + "\n\n" + MARKS[1] + tail, encoding="utf-8"
    )


def main() -> int:
    """Judge the named mutants, or all; 1 if one of them survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="those to plant (default: all)")
    parser.add_argument("--trust", action="store_true", help="do not see the tests pass first")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    mutants = [m for m in read_mutants() if not options.names or m.name in options.names]
    results: dict[Mutant, str] = {}
    with tempfile.TemporaryDirectory(prefix="gatehouse-mutants-") as folder:
        tree = Path(folder)
        copy_commit(tree)
        if not (options.trust or sound(tree, mutants)):
            return 1
        for mutant in mutants:
            began = time.monotonic()
            results[mutant] = judge(tree, mutant)
            seconds = time.monotonic() - began
            sys.stdout.write(f"{results[mutant]:13} {seconds:4.0f} s  {mutant.name}\n")
            sys.stdout.flush()
    found = sum(result.startswith("found") for result in results.values())
    sys.stdout.write(f"{found} of {len(results)} found\n")
    if options.write:
        write_page(results)
    return 0 if found == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
