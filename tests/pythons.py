"""Runs tests with the other supported Pythons, each in a separate environment.

``python -m tests.pythons 3.12 3.13 -- tests/portal`` exits with 1 if any test fails. A version that
is not on this machine is skipped with a visible message.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
UV: Final = str(Path(sys.executable).parent / "uv")
OTHERS: Final = ("servers", "postgres", "cluster", "bench", "faults", "ui", "upstream")
"""Marks of tests that need more than a Python."""


def main(words: list[str]) -> int:
    """Test with each named version; the words after ``--`` are pytest's arguments."""
    at = words.index("--") if "--" in words else len(words)
    versions, paths = words[:at], words[at + 1 :] or ["tests"]
    return max((_test(version, paths) for version in versions), default=0)


def _test(version: str, paths: list[str]) -> int:
    found = _find(version)
    if not found:
        _say(f"*** Python {version} is not on this machine: NOTHING IS TESTED WITH IT ***")
        return 0
    with tempfile.TemporaryDirectory(prefix="gatehouse-python-") as folder:
        python = str(Path(folder) / "venv/bin/python")
        requirements = str(ROOT / "requirements/dev.txt")
        subprocess.run([UV, "venv", "-q", "--python", found, f"{folder}/venv"], check=True)  # noqa: S603 - our own words
        install = [UV, "pip", "install", "-q", "--python", python, "--require-hashes", "-r"]
        subprocess.run([*install, requirements], check=True)  # noqa: S603 - our own words
        around = {**os.environ, "GATEHOUSE_ENV_FILE": os.devnull, "GATEHOUSE_VAR": f"{folder}/var"}
        tests = [python, "-m", "pytest", "-q", "-n", "2", "-m", f"not ({' or '.join(OTHERS)})"]
        _say(f"== Python {version}")
        return subprocess.run([*tests, *paths], cwd=ROOT, env=around, check=False).returncode  # noqa: S603 - our own words


def _find(version: str) -> str:
    """An interpreter that starts, or nothing: from the search path, or from pyenv's versions."""
    found = [shutil.which(f"python{version}") or ""]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found += [str(each) for each in sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    return next((each for each in found if each and _starts(each)), "")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _starts(python: str) -> bool:
    done = subprocess.run([python, "-c", ""], capture_output=True, check=False)  # noqa: S603 - our own words
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
