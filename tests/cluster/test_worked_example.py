"""The page that leads from an empty cluster to enforced policies, executed as it stands."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from portal.dev.supervisor.children import commands
from tests.browser.demo_portal import READY
from tests.cluster.servers import Cluster, cluster
from tests.docs.pages import EXIT_CODE, pattern
from tests.processes import ROOT, free_port, running, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.binaries import Binaries

pytestmark = pytest.mark.cluster
PAGE: Final = (ROOT / "docs" / "how-to" / "enforce-policies-in-an-empty-cluster.md").read_text()
BLOCK: Final = re.compile(
    r"^```console\n(?P<commands>.*?)^```\n(?:\n^```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
START: Final = "make run"
PORT: Final = "8000"
_HEARTBEAT: Final = """
INSERT INTO policies_clusterfollower (cluster_id, holder, epoch, heartbeat, problem)
SELECT id, 'test', 1, datetime('now'), '' FROM policies_cluster WHERE name = 'live'
ON CONFLICT (cluster_id) DO UPDATE SET heartbeat = datetime('now')
"""


@dataclass
class Reader:
    """Somebody with a folder and a terminal who pastes the page's commands."""

    folder: Path
    plane: Cluster
    port: int

    @property
    def around(self) -> dict[str, str]:
        """The terminal's environment: kubectl has the cluster's context."""
        kept = {name: text for name, text in os.environ.items() if "GATEHOUSE" not in name}
        kubectl = str(self.plane.binaries.kubectl.parent)
        return {
            **kept,
            "PATH": os.pathsep.join([kubectl, kept["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "KUBECONFIG": str(self.plane.kubeconfig),
            "HOME": str(self.folder),
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "GATEHOUSE_VAR": str(self.folder / "var"),
            "GATEHOUSE_ENV_FILE": str(self.folder / ".env"),
        }

    def run(self, line: str) -> str:
        """Run a line as the page shows it, in the folder; returns its output."""
        found = EXIT_CODE.search(line)
        ours = line.replace(".venv/bin/python manage.py", f"{sys.executable} {ROOT}/manage.py")
        ours = ours.replace(
            ".venv/bin/python -m portal.dev.self_signed",
            f"{sys.executable} -m portal.dev.self_signed --folder {self.folder}/var/tls",
        )
        done = subprocess.run(  # noqa: S603 - the words stand in our own page
            ["/bin/bash", "-o", "pipefail", "-c", ours.replace(PORT, str(self.port))],
            env=self.around,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        code = int(found[1]) if found else 0
        assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextlib.contextmanager
    def portal(self) -> Iterator[None]:
        """What ``make run`` starts, ready."""
        log = self.folder / "portal.log"
        words = [sys.executable, "-m", "portal.dev.run", "--port", str(self.port)]
        with running(words, self.around, log) as process:
            wait_for(lambda: READY in log.read_text() or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield

    @contextlib.contextmanager
    def follower(self) -> Iterator[None]:
        """Heartbeats of a follower, unless ``make run`` starts a real one."""
        if "follow" in commands():
            yield
            return
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(1):
                with contextlib.closing(
                    sqlite3.connect(self.folder / "var" / "gatehouse.sqlite3", timeout=30)
                ) as database:
                    database.execute(_HEARTBEAT)
                    database.commit()

        thread = threading.Thread(target=beat)
        thread.start()
        yield
        ended.set()
        thread.join()


@pytest.fixture
def reader(binaries: Binaries, tmp_path: Path) -> Iterator[Reader]:
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    with cluster(binaries) as plane:
        yield Reader(tmp_path, plane, free_port())


def test_the_page_leads_to_enforced_policies(reader: Reader) -> None:
    blocks = [
        (found["commands"].splitlines(), found["output"] or "") for found in BLOCK.finditer(PAGE)
    ]
    with contextlib.ExitStack() as until_the_end:
        for lines, shown in blocks:
            printed = ""
            for line in lines:
                if line == START:
                    until_the_end.enter_context(reader.portal())
                    until_the_end.enter_context(reader.follower())
                else:
                    printed += reader.run(line)
            assert not shown or pattern(shown).fullmatch(printed), printed
    assert any(START in lines for lines, _ in blocks)
