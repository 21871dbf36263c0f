"""The portal as users start it, with demo data and people of each role."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.processes import ROOT, free_port, running, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORD: Final = "right-horse-battery"
READY: Final = "Ctrl-C stops it"


@dataclass(frozen=True)
class Portal:
    """A running portal: its port, and the environment of its code."""

    port: int
    around: dict[str, str]

    @property
    def address(self) -> str:
        """The address that users type."""
        return f"http://127.0.0.1:{self.port}"

    def run(self, name: str, *words: str) -> dict[str, Any]:
        """Run a module of this folder with the portal's code; returns its output as JSON."""
        found: dict[str, Any] = json.loads(self._python("-m", f"tests.browser.{name}", *words))
        return found

    def manage(self, *words: str) -> str:
        """Run one of the portal's commands; returns its output."""
        return self._python("manage.py", *words)

    def _python(self, *words: str) -> str:
        done = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, *words],
            env=self.around,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def surroundings(folder: Path, port: int) -> dict[str, str]:
    """An environment with a separate data folder and no inherited settings."""
    around = {name: text for name, text in os.environ.items() if "GATEHOUSE" not in name}
    return {
        **around,
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "GATEHOUSE_ENV_FILE": os.devnull,
        "GATEHOUSE_VAR": str(folder / "var"),
        "GATEHOUSE_ADMIN_PASSWORD": PASSWORD,
        "GATEHOUSE_EXTERNAL_URL": f"http://127.0.0.1:{port}",
        "GATEHOUSE_CLUSTER_ADDRESSES": "127.0.0.0/8",
        "GATEHOUSE_WEB_WORKERS": "1",
        "GATEHOUSE_WEB_THREADS": "4",
        "GATEHOUSE_LOG_LEVEL": "WARNING",
    }


@contextlib.contextmanager
def portal(folder: Path) -> Iterator[Portal]:
    """Web, worker and beat over a new database; ended with all their children."""
    port, log = free_port(), folder / "log"
    around = surroundings(folder, port)
    words = [sys.executable, "-m", "portal.dev.run", "--port", str(port)]
    with running(words, around, log) as process:
        wait_for(lambda: READY in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        made = Portal(port, around)
        yield made
        print(log.read_text()[-4000:])  # noqa: T201 - shown beside a test that failed
