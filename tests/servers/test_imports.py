"""An import of many policies delays no cluster, on SQLite either: its transactions are short."""

from __future__ import annotations

import http.client
import json
import re
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlencode

import pytest

from tests.processes import free_port, running, status_of, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.servers
ROOT: Final = Path(__file__).resolve().parents[2]
PASSWORD: Final = "correct horse battery staple"
OBJECTS: Final = 2000
HELD: Final = 3.0
"""Seconds for which another writer holds the file: longer than any import, below our wait."""
RANGE: Final = """\
apiVersion: v1
kind: LimitRange
metadata: {name: r%d, namespace: default}
spec:
  limits: [{type: Container, max: {cpu: 2}}]
"""
KIND: Final = {"group": "", "version": "v1", "kind": "Pod"}
RESOURCE: Final = {"group": "", "version": "v1", "resource": "pods"}
POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
}


class Person:
    """A browser without a window: cookies, forms and their tokens."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookies: dict[str, str] = {}

    def ask(self, method: str, path: str, fields: dict[str, str] | None = None) -> tuple[int, str]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        body = None
        if fields is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(fields)
        line.request(method, path, body, headers)
        answer = line.getresponse()
        for each in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = each.partition(";")[0].partition("=")
            self.cookies[name] = value
        text = answer.read().decode()
        line.close()
        return answer.status, text

    def send(self, path: str, **fields: str) -> tuple[int, str]:
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.ask("GET", path)[1])
        assert found
        return self.ask("POST", path, {"csrfmiddlewaretoken": found[1], **fields})


@pytest.fixture
def port(surroundings: dict[str, str], tmp_path: Path, prepared: Any) -> Iterator[int]:
    port = free_port()
    settings = {
        **prepared.settings,
        "GATEHOUSE_EXTERNAL_URL": "http://127.0.0.1:8000",
        "GATEHOUSE_LISTEN_PORT": str(port),
        "GATEHOUSE_WEB_WORKERS": "1",
        "GATEHOUSE_DRAIN_SECONDS": "0",
        "GATEHOUSE_ADMIN_PASSWORD": PASSWORD,
    }
    around = {**surroundings, **settings}
    words = [sys.executable, "manage.py", "bootstrap"]
    subprocess.run(words, env=around, cwd=ROOT, check=True, timeout=120, stdout=subprocess.DEVNULL)  # noqa: S603 - our own words
    words = [sys.executable, "-m", "portal.serve"]
    with running(words, around, tmp_path / "log"):
        wait_for(lambda: status_of(port, "/readyz") == 200)
        yield port


class Reviews:
    """Reviews of one pod after the other, until stopped."""

    def __init__(self, port: int, credential: str) -> None:
        self.port, self.credential = port, credential
        self.statuses: list[int] = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.stopped.wait(0.05):
            request = {"uid": str(uuid.uuid4()), "namespace": "default", "operation": "CREATE"}
            request |= {"kind": KIND, "resource": RESOURCE, "object": POD}
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
            line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            path = f"/admission/demo/{self.credential}/validate?timeout=10s"
            line.request("POST", path, json.dumps({**review, "request": request}))
            self.statuses.append(line.getresponse().status)
            line.close()

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()


def test_reviews_are_answered_while_two_thousand_policies_are_imported(
    port: int, prepared: Any
) -> None:
    person = Person(port)
    assert person.send("/accounts/login/", username="admin", password=PASSWORD)[0] == 302
    text = "---\n".join(RANGE % number for number in range(OBJECTS))
    fields = {"text": text, "create_namespaces": "on"}
    with Reviews(port, prepared.credential) as reviews:
        wait_for(lambda: len(reviews.statuses) > 3)
        status, page = person.send("/clusters/demo/import/", **fields, do="plan")
        assert status == 200
        seen = re.search(r'name="seen" value="(\w+)"', page)
        assert seen
        before = len(reviews.statuses)
        fields |= {"do": "save", "seen": seen[1], "reason": "all of them"}
        assert person.send("/clusters/demo/import/", **fields)[0] == 302
        wait_for(lambda: len(reviews.statuses) > before + 3)
    assert set(reviews.statuses) == {200}


def test_reviews_wait_for_a_long_write_of_another_process(port: int, prepared: Any) -> None:
    with Reviews(port, prepared.credential) as reviews:
        wait_for(lambda: len(reviews.statuses) > 3)
        other = sqlite3.connect(prepared.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        before = len(reviews.statuses)
        time.sleep(HELD)
        assert len(reviews.statuses) <= before + 1
        other.execute("ROLLBACK")
        other.close()
        wait_for(lambda: len(reviews.statuses) > before + 3)
    assert set(reviews.statuses) == {200}
