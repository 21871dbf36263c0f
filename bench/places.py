"""Where the benchmark keeps things, and which programs it finds. Standard library only."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results"
BUILT: Final = RESULTS / "peers"
ENGINES: Final = RESULTS / "python"
GRANIAN: Final = Path(sys.executable).with_name("granian")


class MissingError(RuntimeError):
    """A program that the benchmark cannot do without is not here."""


def program(name: str) -> str:
    """The path of a program; raises ``MissingError``."""
    found = shutil.which(name)
    if not found:
        raise MissingError(f"there is no {name} here")
    return found


def postgres_programs() -> Path:
    """Where initdb and pg_ctl are: on the path, or where Debian puts the newest version."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not installed:
        raise MissingError(
            "there is no PostgreSQL server here; on Debian: apt-get install postgresql"
        )
    return installed[-1].parent


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def surroundings(**more: str) -> dict[str, str]:
    """Our environment without anybody's settings, and with the named ones."""
    own = {name: text for name, text in os.environ.items() if "GATEHOUSE" not in name}
    return {**own, "GATEHOUSE_ENV_FILE": os.devnull, **more}
