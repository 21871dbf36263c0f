"""A portal for clients of its API: started with a stored world, tokens and some decisions."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.builders import container, pod
from tests.processes import ROOT, free_port, running, status_of, wait_for
from tests.reviews import review
from tests.servers.api_world import CLUSTER, NAMESPACE, PASSWORD, ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_LIMITS: Final = ("100m", "1", "3", "x")


@dataclass(frozen=True)
class ApiPortal:
    """Its address, and a token for each role."""

    address: str
    tokens: Mapping[str, str]

    @property
    def schema(self) -> str:
        """The address of its OpenAPI document."""
        return f"{self.address}/api/schema/?format=json"

    @property
    def operations(self) -> list[str]:
        """The ids of all operations."""
        document = self.ask("GET", "/api/schema/?format=json")
        paths: list[dict[str, Any]] = list(document["paths"].values())
        return [each["operationId"] for methods in paths for each in methods.values()]

    def ask(self, method: str, path: str, body: Any = None, *, role: str = "admin") -> Any:
        """The JSON of an answer that succeeds."""
        headers = {"Content-Type": "application/json"}
        if role:
            headers["Authorization"] = f"Token {self.tokens[role]}"
        return _asked(method, f"{self.address}{path}", body, headers)


def _asked(method: str, address: str, body: Any, headers: dict[str, str]) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310 - our own address
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - the same
        return json.loads(answer.read() or b"null")


@contextlib.contextmanager
def api_portal(folder: Path, *, database: str = "") -> Iterator[ApiPortal]:
    """Start one in a folder, on SQLite unless a database is given."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    settings = {
        **{name: text for name, text in os.environ.items() if "GATEHOUSE" not in name},
        "GATEHOUSE_ENV_FILE": os.devnull,
        "GATEHOUSE_VAR": str(folder / "var"),
        "GATEHOUSE_DATABASE_URL": database or f"sqlite:///{folder / 'gatehouse.sqlite3'}",
        "GATEHOUSE_SECRET_KEY": "k" * 60,
        "GATEHOUSE_LISTEN_PORT": str(port),
        "GATEHOUSE_EXTERNAL_URL": address,
        "GATEHOUSE_WEB_WORKERS": "1",
        "GATEHOUSE_LOG_LEVEL": "ERROR",
        "GATEHOUSE_DRAIN_SECONDS": "0",
    }
    words = [sys.executable, "-m", "tests.servers.api_world"]
    done = subprocess.run(  # noqa: S603 - our own words
        words, env=settings, cwd=ROOT, check=True, timeout=120, capture_output=True, text=True
    )
    web = [sys.executable, "-m", "portal.serve"]
    with running(web, settings, folder / "portal.log"):
        wait_for(lambda: status_of(port, "/readyz") == 200)
        _decide(address, done.stdout.strip())
        yield ApiPortal(address, {role: _token(address, role) for role in ROLES})


def _token(address: str, role: str) -> str:
    body = {"username": role, "password": PASSWORD}
    headers = {"Content-Type": "application/json"}
    token: str = _asked("POST", f"{address}/api/v1/token/", body, headers)["token"]
    return token


def _decide(address: str, credential: str) -> None:
    """Put some decisions on record: allowed, changed and denied."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {credential}"}
    for phase in ("mutate", "validate"):
        for number, amount in enumerate(_LIMITS):
            resources = {"limits": {"cpu": amount}} if number else {}
            thing = pod(container(**resources), name=f"web-{number}", namespace=NAMESPACE)
            body = review(thing, namespace=NAMESPACE)
            _asked("POST", f"{address}/admission/{CLUSTER}/{phase}", body, headers)
