"""On PostgreSQL, a write that one process lets pass makes reviews in another one wait for it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final
from urllib.request import Request, urlopen

import pytest

from tests.faults.portals import surroundings as portal_surroundings
from tests.processes import ROOT, free_port, running, status_of, wait_for
from tests.reviews import SEED_LIMITS, new_pod, patch_of, review

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.servers
# Nobody gives up while a slow machine runs this test.
SERVE: Final = """
import django; django.setup()
import runpy
from admission.api import waits
from policies.snapshot import marks
waits.LONGEST = marks.SECONDS = 120.0
runpy.run_module("portal.serve", run_name="__main__")
"""
PREPARE: Final = """
import django; django.setup()
from django.core.management import call_command
from policies import services
from policies.models import Cluster
call_command("migrate", verbosity=0)
cluster = Cluster(name="demo")
services.save_cluster(cluster=cluster, user="root")
print(services.issue_webhook_credential(cluster=cluster, label="hook", user="root")[1])
"""
BEAT: Final = """
import django; django.setup()
from datetime import timedelta
from django.db.models.functions import Now
from policies.models import Cluster, ClusterFollower
heartbeat = Now() + timedelta(hours=1)  # young for as long as the test takes
ClusterFollower.objects.create(cluster=Cluster.objects.get(), heartbeat=heartbeat)
"""
FOLLOW: Final = """
import django; django.setup()
import json, sys
from django.db import transaction
from policies import services
from policies.models import Cluster
from policies.snapshot import announcements
cluster, manifest = Cluster.objects.get(), json.load(sys.stdin)
with transaction.atomic():
    services.apply_manifest(cluster=cluster, manifest=manifest, user="f", create_namespace=True)
    seen = announcements.Seen("LimitRange", "ns", "limits", uid="", resource_version="1")
    print(announcements.arrived(cluster.pk, [seen]))
"""


def run(script: str, around: dict[str, str], stdin: str = "") -> str:
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", script],
        env=around,
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def environment(tmp_path: Path, postgres_address: str) -> dict[str, str]:
    around = portal_surroundings(tmp_path, postgres_address)
    return {**around, "DJANGO_SETTINGS_MODULE": "portal.settings"}


@pytest.fixture
def credential(environment: dict[str, str]) -> str:
    return run(PREPARE, environment)


@pytest.fixture
def ports(environment: dict[str, str], credential: str, tmp_path: Path) -> Iterator[list[int]]:
    """Two portals of one process each, on one database."""
    found = [free_port(), free_port()]
    with ExitStack() as started:
        for port in found:
            own = {
                "GATEHOUSE_LISTEN_PORT": str(port),
                "GATEHOUSE_VAR": str(tmp_path / f"{port}"),
                "GATEHOUSE_METRICS_TOKEN": "m",
            }
            words = [sys.executable, "-c", SERVE]
            started.enter_context(running(words, {**environment, **own}, tmp_path / f"{port}.log"))
        for port in found:
            wait_for(lambda port=port: status_of(port, "/readyz") == 200)  # type: ignore[misc]
        yield found


def ask(port: int, credential: str, phase: str, asked: Any) -> Any:
    address = f"http://127.0.0.1:{port}/admission/demo/{credential}/{phase}?timeout=29s"
    request = Request(address, json.dumps(asked).encode())
    with urlopen(request, timeout=60) as answer:  # noqa: S310 - the same
        return json.load(answer)


def metric(port: int, name: str) -> float:
    request = Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer m"})
    with urlopen(request, timeout=60) as answer:  # noqa: S310 - the same
        lines = answer.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_reviews_in_other_processes_wait(
    environment: dict[str, str], credential: str, ports: list[int]
) -> None:
    first, second = ports
    asked = review(
        SEED_LIMITS,
        kind={"group": "", "version": "v1", "kind": "LimitRange"},
        resource={"group": "", "version": "v1", "resource": "limitranges"},
        name="limits",
    )
    run(BEAT, environment)
    assert ask(first, credential, "validate", asked)["response"]["allowed"] is True
    assert metric(first, 'gatehouse_admission_hints_total{outcome="announced"}') == 1
    answers: list[Any] = []
    waiting = threading.Thread(
        target=lambda: answers.append(ask(second, credential, "mutate", review(new_pod())))
    )
    waiting.start()
    assert run(FOLLOW, environment, json.dumps(SEED_LIMITS)) == "1"
    waiting.join()
    assert "500m" in json.dumps(patch_of(answers[0]))
    assert metric(second, 'gatehouse_admission_waits_total{outcome="waited"}') == 1
