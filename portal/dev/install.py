"""``python3 -m portal.dev.install main`` (or ``dev``): ``.venv`` made, pip runs hash-pinned; say.

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


def main(arguments: list[str]) -> int:
    """Install one requirement file; returns the exit code."""
    try:
        install(arguments[0] if arguments else "main")
    except InstallError as error:
        sys.stderr.write(f"gatehouse: {error}\n")
        return 1
    return 0


def install(name: str) -> None:
    """Bring ``.venv`` up to ``requirements/<name>.txt``; raises InstallError."""
    if sys.version_info < OLDEST:
        python_version = ".".join(map(str, sys.version_info[:2]))
        raise InstallError(f"Python {python_version} is too old; run: make PYTHON=python3.11 setup")
    requirements_file = ROOT / "requirements" / f"{name}.txt"
    requirements_digest = hashlib.sha256(requirements_file.read_bytes()).hexdigest()
    python, venv_stamp = VENV / "bin" / "python", VENV / f"gatehouse-{name}.stamp"
    if not _venv_works(python):
        _make_venv()
    elif venv_stamp.exists() and venv_stamp.read_text("utf-8") == requirements_digest:
        return
    say(f"installing requirements/{name}.txt (hash-pinned)")
    pip_command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The file names all that is needed. Left to look for more, pip 23 takes a newer release of what
    # a package asks for with an extra, and then refuses it because that release is not pinned.
    pip_command += ["--require-hashes", "--no-deps", "--requirement", str(requirements_file)]
    pip_run = subprocess.run(pip_command, check=False, capture_output=True, text=True)  # noqa: S603  our own words
    if pip_run.returncode:
        pip_lines = (pip_run.stderr or pip_run.stdout).strip().splitlines() or ["pip failed"]
        raise InstallError(f"{pip_lines[-1]} (is a package index within reach? then run it again)")
    # Written last: an interrupted install is not taken for a complete one.
    venv_stamp.write_text(requirements_digest, encoding="utf-8")


def _venv_works(python: Path) -> bool:
    """Whether the environment's own Python starts and has pip."""
    pip_check = [str(python), "-c", "import pip"]
    try:
        return subprocess.run(pip_check, check=False, capture_output=True).returncode == 0  # noqa: S603  our own .venv
    except OSError:  # no such file, or the interpreter behind its link is gone
        return False


def _make_venv() -> None:
    if VENV.exists():
        say(".venv is half made: building it again")
        shutil.rmtree(VENV)
    else:
        say("making .venv")
    venv_command = [sys.executable, "-m", "venv", str(VENV)]
    venv_run = subprocess.run(venv_command, check=False, capture_output=True, text=True)  # noqa: S603  our own words
    if venv_run.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        raise InstallError("Python has no venv module; on Debian: apt-get install python3-venv")


def say(text: str) -> None:
    """Print a message at once, also into a pipe."""
    sys.stdout.write(f"gatehouse: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
