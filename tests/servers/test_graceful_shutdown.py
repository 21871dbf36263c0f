"""Portals on one database that stop under load: no call is lost."""

from __future__ import annotations

import itertools
import json
import signal
import sqlite3
import sys
import uuid
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.callers import answers_of, calling
from tests.processes import free_port, running, status_of, wait_for

if TYPE_CHECKING:
    import http.client
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.servers
KIND = {"group": "", "version": "v1", "kind": "Pod"}
RESOURCE = {"group": "", "version": "v1", "resource": "pods"}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}


@dataclass
class Portal:
    """One of several portals."""

    process: subprocess.Popen[bytes]
    port: int

    def is_ready(self) -> bool:
        return status_of(self.port, "/readyz") == 200


@pytest.fixture
def two_portals(
    surroundings: dict[str, str], tmp_path: Path, prepared: Any
) -> Iterator[list[Portal]]:
    """Two on one database, each with a separate folder."""
    found = []
    with ExitStack() as stack:
        for name in ("one", "two"):
            port = free_port()
            settings = {
                "GATEHOUSE_VAR": str(tmp_path / name),
                **prepared.settings,
                "GATEHOUSE_EXTERNAL_URL": "http://127.0.0.1:8000",
                "GATEHOUSE_LISTEN_PORT": str(port),
                "GATEHOUSE_WEB_WORKERS": "1",
                "GATEHOUSE_DRAIN_SECONDS": "3",
            }
            words = [sys.executable, "-m", "portal.serve"]
            log = tmp_path / f"{name}.log"
            process = stack.enter_context(running(words, {**surroundings, **settings}, log))
            found.append(Portal(process, port))
        for each in found:
            wait_for(each.is_ready)
        yield found


class Balancer:
    """The next port: those that were ready at the last check, in turn."""

    def __init__(self, portals: list[Portal]) -> None:
        self._portals = portals
        self._turns = itertools.count()
        self.look()

    def look(self) -> int:
        self.ready = [each.port for each in self._portals if each.is_ready()]
        return len(self.ready)

    def __call__(self) -> int:
        ready = self.ready
        return ready[next(self._turns) % len(ready)]


def reviews(credential: str) -> Callable[[http.client.HTTPConnection], int]:
    """Request one more decision."""
    path = f"/admission/demo/{credential}/validate?timeout=10s"

    def post(line: http.client.HTTPConnection) -> int:
        review = {"uid": str(uuid.uuid4()), "namespace": "default", "operation": "CREATE"}
        review |= {"kind": KIND, "resource": RESOURCE, "object": POD}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": review}
        line.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = line.getresponse()
        text = answer.read()
        return answer.status if review["uid"].encode() in text else 0

    return post


def test_portal_that_stops_is_left_and_no_decision_is_missed(
    two_portals: list[Any], prepared: Any
) -> None:
    balancer, (one, two) = Balancer(two_portals), two_portals
    with calling(balancer, tls=False, ask=reviews(prepared.credential)) as callers:
        answers_of(callers, 30)
        one.process.send_signal(signal.SIGTERM)
        wait_for(lambda: balancer.look() == 1)
        assert balancer.ready == [two.port]
        assert one.process.wait(30) == 0
        answers_of(callers, 30)
    assert callers.failures == []
    with closing(sqlite3.connect(prepared.path)) as database:
        count = "SELECT count(*) FROM admission_auditevent"
        assert database.execute(count).fetchone() == (callers.answers,)
