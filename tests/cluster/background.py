"""Workers and beats of the product on a database of their own, as started by ``make run``."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.faults.portals import surroundings
from tests.processes import ROOT, free_port, running, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.cluster.views import Views

_DATABASE: Final = "gatehouse.sqlite3"
_MIGRATE: Final = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
"""
_CONNECT: Final = """
import django, json, sys; django.setup()
from pathlib import Path
from policies import services
from policies.models import Cluster
from sync.models import SyncOwnership
from sync.connect import connections, seal_keys
from sync.values import Credentials
from portal.dev.supervisor.children import commands
seal_keys.ensure_keys()
options = json.load(sys.stdin)
for name, server in options["servers"].items():
    cluster = services.save_cluster(cluster=Cluster(name=name), user="root").instance
    connections.connect(cluster, Credentials(server, options["ca"].encode(), "admin-token"), "root")
    SyncOwnership.objects.create(cluster=cluster, user="root")
print(json.dumps(commands()))
"""
_EDIT: Final = """
import django, json, sys; django.setup()
from django.db import transaction
from policies import services
from policies.models import Cluster
with transaction.atomic():
    for name, documents in json.load(sys.stdin).items():
        cluster = Cluster.objects.get(name=name)
        for document in documents:
            if "spec" in document:
                services.apply_manifest(cluster=cluster, manifest=document, user="editor",
                    create_namespace=True)
            else:
                found = services.find_object(cluster, kind="ResourceQuota",
                    name=document["metadata"]["name"], namespace=name)
                services.delete_policy(policy=found, user="editor")
"""
_STORED: Final = """
import django, json; django.setup()
from policies.models import ResourceQuota
found = {}
for one in ResourceQuota.objects.select_related("namespace__cluster"):
    spec = one.to_manifest()["spec"]["hard"]
    found.setdefault(one.namespace.cluster.name, {})[one.name] = spec
print(json.dumps(found))
"""
_REQUEST: Final = """
import django; django.setup()
from policies.models import Cluster
from sync.passes import lifecycle
for cluster in Cluster.objects.all():
    lifecycle.request(cluster, mode="sync", trigger="person", user="root")
"""


@dataclass
class Background:
    """One database, and the processes that work on it."""

    folder: Path
    around: dict[str, str]
    commands: dict[str, list[str]] = field(default_factory=dict)

    def connect(self, seen: Views) -> None:
        """Create a cluster for each view, all of it owned by the portal."""
        ca = seen.plane.authority.certificate.read_text()
        servers = {view.name: view.server for view in seen.all()}
        self.commands = json.loads(self.run(_CONNECT, {"servers": servers, "ca": ca}))

    def edit(self, documents: Mapping[str, Sequence[Any]]) -> None:
        """Edit our side, by cluster and all at once; an object without spec is deleted."""
        self.run(_EDIT, documents)

    def stored(self) -> dict[str, dict[str, Any]]:
        """Our quotas: hard limits by cluster and name."""
        found: dict[str, dict[str, Any]] = json.loads(self.run(_STORED))
        return found

    def request(self) -> None:
        """Request a pass over each cluster."""
        self.run(_REQUEST)

    def run(self, script: str, given: object = None) -> str:
        """Run a script with the product's code."""
        done = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "-c", script],
            env=self.around,
            cwd=ROOT,
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, query: str) -> list[Any]:
        """Query the database for values that no command prints."""
        with closing(sqlite3.connect(self.folder / _DATABASE, timeout=30)) as database:
            return database.execute(query).fetchall()

    def count(self, state: str, mode: str = "sync") -> int:
        """Count the runs of that mode in that state."""
        counted = "SELECT count(*) FROM sync_syncrun"
        found: int = self.ask(f"{counted} WHERE state = '{state}' AND mode = '{mode}'")[0][0]
        return found

    @contextlib.contextmanager
    def start(
        self, kind: str, number: int = 1, words: Sequence[str] = ()
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start a worker or a beat, by other words if given; each leads its own process group."""
        words = list(words or self.commands[kind])
        if kind == "worker":
            words += ["--hostname", f"worker-{number}@%h"]
        words = [word.replace("beat-schedule", f"beat-{number}") for word in words]
        with running(words, self.around, self.folder / f"{kind}-{number}.log") as process:
            yield process

    def log(self) -> str:
        """The output of all of them."""
        return "\n".join(file.read_text() for file in sorted(self.folder.glob("*.log")))


def empty_database(folder: Path) -> Path:
    """A database with all tables, as a template: creating them takes long."""
    background(folder).run(_MIGRATE)
    return folder / _DATABASE


def background(folder: Path, database: Path | None = None, **settings: str) -> Background:
    """A setup for workers, with the file broker unless the settings name another one."""
    if database is not None:
        shutil.copy(database, folder / _DATABASE)
    around = {
        **surroundings(folder, f"sqlite:///{folder / _DATABASE}"),
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "GATEHOUSE_CLUSTER_ADDRESSES": "127.0.0.0/8",
        "GATEHOUSE_LOG_LEVEL": "WARNING",
        **settings,
    }
    for name in ("queue", "control"):
        (folder / "broker" / name).mkdir(parents=True, exist_ok=True)
    return Background(folder, around)


@contextlib.contextmanager
def redis(folder: Path) -> Iterator[str]:
    """The address of a Redis without persistence."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("NO REDIS SERVER HERE; on Debian: apt-get install redis-server")
    port, log = free_port(), folder / "redis.log"
    words = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    with running([*words, "--save", ""], {}, log):
        wait_for(lambda: "Ready to accept" in log.read_text())
        yield f"redis://127.0.0.1:{port}/0"


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all its children at once (kill -9)."""
    os.killpg(process.pid, signal.SIGKILL)
    wait_for(lambda: process.poll() is not None)
