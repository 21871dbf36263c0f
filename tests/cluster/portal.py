"""A dedicated portal behind an API server: its database, its certificate, its webhooks over TLS."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from portal.health.probe import is_ready
from tests.cluster.certificates import Pair, issue, make_authority
from tests.faults.portals import surroundings
from tests.processes import ROOT, free_port, running, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from tests.cluster.servers import Cluster

_SEED: Final = """
import json
import django; django.setup()
from django.core.management import call_command
from policies import services
from policies.models import Cluster
from portal.dev.demo import seed_demo
call_command("migrate", verbosity=0)
seed_demo()
secrets = {
    cluster.name: services.issue_webhook_credential(cluster=cluster, label="hook", user="root")[1]
    for cluster in Cluster.objects.all()
}
print(json.dumps(secrets))
"""

_COVER: Final = """
import django; django.setup()
from policies import services
from policies.models import Cluster
for cluster in Cluster.objects.all():
    cluster.covers_kube_system = True
    services.save_cluster(cluster=cluster, user="root")
"""


@dataclass
class Portal:
    """A running portal with the demo's clusters, and their credentials by name."""

    folder: Path
    port: int
    authority: Pair
    around: dict[str, str]
    secrets: dict[str, str]
    enforced: list[Cluster] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The address that API servers call."""
        return f"https://127.0.0.1:{self.port}"

    def manage(self, *words: str, stdin: str = "") -> str:
        """Run one of the portal's commands; returns its output."""
        done = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "manage.py", *words],
            env=self.around,
            cwd=ROOT,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, script: str, stdin: str = "") -> str:
        """Run a script with the portal's code; returns its output."""
        return _run(self.around, script, stdin)

    @contextlib.contextmanager
    def started(self, script: str, given: object) -> Iterator[IO[str]]:
        """The lines that a script prints while it runs, with JSON as its input."""
        with subprocess.Popen(  # noqa: S603 - our own words
            [sys.executable, "-c", script],
            env=self.around,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(given))
            process.stdin.close()
            yield process.stdout
            process.wait(120)

    def cover_kube_system(self) -> None:
        """Include kube-system in all webhooks that are registered from now on."""
        self.run(_COVER)

    def enforce(self, cluster: Cluster, name: str) -> None:
        """Register the webhooks of the portal at the API server that it knows by this name."""
        self.enforced.append(cluster)
        key = self.folder / f"{name}.key"
        key.write_text(self.secrets[name])
        words = ["--ca-file", str(self.authority.certificate), "--key-file", str(key)]
        items = self.manage("cluster_manifests", name, *words, "--output", "yaml")
        (self.folder / f"{name}.yaml").write_text(items)
        words = ["apply", "--server-side", "--filename", str(self.folder / f"{name}.yaml")]
        done = cluster.kubectl(*words)
        assert done.returncode == 0, done.stderr

    def release(self) -> None:
        """Take the webhooks from all API servers: other modules use these without this portal."""
        for cluster in self.enforced:
            kinds = "mutatingwebhookconfiguration,validatingwebhookconfiguration"
            cluster.kubectl("delete", kinds, "gatehouse", "--ignore-not-found")


@contextlib.contextmanager
def portal(folder: Path) -> Iterator[Portal]:
    """A portal that serves TLS; removed after the test."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = make_authority(folder)
    pair = issue(folder, "tls", authority, subject="/CN=gatehouse")
    port = free_port()
    around = {
        **surroundings(folder, f"sqlite:///{folder / 'gatehouse.sqlite3'}", port),
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "GATEHOUSE_EXTERNAL_URL": f"https://127.0.0.1:{port}",
        "GATEHOUSE_TLS_CERTIFICATE": str(pair.certificate),
        "GATEHOUSE_TLS_KEY": str(pair.key),
    }
    made = Portal(folder, port, authority, around, _seed(around))
    log = folder / "portal.log"
    with running([sys.executable, "-m", "portal.serve"], around, log) as process:
        wait_for(lambda: is_ready(around) or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield made


def _seed(around: dict[str, str]) -> dict[str, str]:
    secrets: dict[str, str] = json.loads(_run(around, _SEED).splitlines()[-1])
    return secrets


def _run(around: dict[str, str], script: str, stdin: str = "") -> str:
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", script],
        env=around,
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
