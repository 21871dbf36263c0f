"""Create ``.venv`` from the pinned requirement files; plain Python.

``python3 -m portal.dev.install main`` (or ``dev``) does nothing when the environment is up to date.
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
    """What went wrong and what to do, in one line."""


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
    if _is_current(name, requirements):
        return
    if not _works():
        _make()
    _say(f"installing requirements/{name}.txt (hash-pinned)")
    _install(requirements)
    _stamp(name).write_text(_fingerprint(requirements), encoding="utf-8")


def _stamp(name: str) -> Path:
    return VENV / f"gatehouse-{name}.stamp"


def _fingerprint(requirements: Path) -> str:
    return hashlib.sha256(requirements.read_bytes()).hexdigest()


def _is_current(name: str, requirements: Path) -> bool:
    stamp = _stamp(name)
    return _works() and stamp.exists() and stamp.read_text("utf-8") == _fingerprint(requirements)


def _python() -> Path:
    return VENV / "bin" / "python"


def _works() -> bool:
    """Whether the environment's own Python starts and has its installer."""
    if not _python().exists():
        return False
    asked = [str(_python()), "-c", "import pip"]
    try:
        return subprocess.run(asked, check=False, capture_output=True).returncode == 0  # noqa: S603  our own .venv
    except OSError:
        return False


def _make() -> None:
    if VENV.exists():
        _say(".venv is half made: building it anew")
        shutil.rmtree(VENV)
    else:
        _say("making .venv")
    command = [sys.executable, "-m", "venv", str(VENV)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603  our own words
    if done.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        raise InstallError("Python has no venv module; on Debian: apt-get install python3-venv")


def _install(requirements: Path) -> None:
    command = [str(_python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--requirement", str(requirements)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603  our own words
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["pip failed"]
        raise InstallError(f"{lines[-1]} (is a package index within reach? then run it again)")


def _say(text: str) -> None:
    sys.stdout.write(f"gatehouse: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
