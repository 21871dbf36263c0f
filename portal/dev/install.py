"""``python3 -m portal.dev.install main`` (or ``dev``): create ``.venv`` from pinned requirements.

It does nothing if the environment is up to date. Plain Python, for it runs first of all.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
OLDEST = (3, 11)


class InstallError(Exception):
    """The failure and its remedy, in one line."""


def main(words: list[str]) -> int:
    """Install one requirement file; returns the exit code."""
    try:
        install(words[0] if words else "main")
    except InstallError as error:
        sys.stderr.write(f"gatehouse: {error}\n")
        return 1
    return 0


def install(name: str) -> None:
    """Bring ``.venv`` up to ``requirements/<name>.txt``; raises InstallError."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:2]))
        raise InstallError(f"Python {found} is too old; run: make PYTHON=python3.11 setup")
    requirements = ROOT / "requirements" / f"{name}.txt"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    python, stamp = VENV / "bin" / "python", VENV / f"gatehouse-{name}.stamp"
    if not _works(python):
        _make()
    elif stamp.exists() and stamp.read_text("utf-8") == wanted:
        return
    say(f"installing requirements/{name}.txt (hash-pinned)")
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The file names all that is needed. Left to look for more, pip 23 takes a newer release of what
    # a package asks for with an extra, and then refuses it because that release is not pinned.
    command += ["--require-hashes", "--no-deps", "--requirement", str(requirements)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603  our own words
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["pip failed"]
        raise InstallError(f"{lines[-1]} (is a package index within reach? then run it again)")
    # Written last: an interrupted install is not taken for a complete one.
    stamp.write_text(wanted, encoding="utf-8")


def _works(python: Path) -> bool:
    """Whether the environment's own Python starts and has pip."""
    command = [str(python), "-c", "import pip"]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603  our own .venv
    except OSError:  # no such file, or the interpreter behind its link is gone
        return False


def _make() -> None:
    if VENV.exists():
        say(".venv is half made: building it again")
        shutil.rmtree(VENV)
    else:
        say("making .venv")
    command = [sys.executable, "-m", "venv", str(VENV)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603  our own words
    if done.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        raise InstallError("Python has no venv module; on Debian: apt-get install python3-venv")


def say(text: str) -> None:
    """Print a message at once, also into a pipe."""
    sys.stdout.write(f"gatehouse: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
