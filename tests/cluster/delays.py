"""Delays on a live API server, from an event there or in the portal until its effect is seen."""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.cluster.servers import Cluster

    Manifest = dict[str, Any]

LONGEST: Final = 30.0
"""Seconds after which an effect counts as absent."""
IN_A_ROW: Final = 4
"""Answers alike in a row: two web processes answer in turns, and all must know."""
_STEPS: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 15.0, LONGEST)


class Api:
    """Quick calls of an API server, as its administrator."""

    def __init__(self, cluster: Cluster) -> None:
        known = json.loads(cluster.kubeconfig.read_text())
        server, user = known["clusters"][0]["cluster"], known["users"][0]["user"]
        authority = b64decode(server["certificate-authority-data"]).decode()
        self._client = httpx2.Client(
            base_url=server["server"],
            verify=ssl.create_default_context(cadata=authority),
            headers={"Authorization": f"Bearer {user['token']}"},
            timeout=60,
        )

    def call(self, method: str, path: str, body: Manifest | None = None) -> httpx2.Response:
        """Send a request; ``path`` is below ``/api/v1`` unless it begins with ``/apis``."""
        whole = path if path.startswith("/apis") else f"/api/v1{path}"
        patched = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        return self._client.request(method, whole, json=body, headers=patched)

    def do(self, method: str, path: str, body: Manifest | None = None) -> Manifest:
        """Send a request that must succeed; returns the object."""
        answer = self.call(method, path, body)
        assert answer.status_code < 300, answer.text
        found: Manifest = answer.json()
        return found

    def admits(self, namespace: str, pod: Manifest) -> bool:
        """Whether a pod would be admitted, by a dry run."""
        answer = self.call("POST", f"/namespaces/{namespace}/pods?dryRun=All", pod)
        assert answer.status_code in (201, 403), answer.text
        return bool(answer.status_code == 201)

    def finds_full(self, namespace: str, pod: Manifest) -> bool:
        """Whether a pod would be refused for want of room, by a dry run.

        So answers only a process that knows the quota and what it counts: before that it admits
        the pod, or refuses it because the status is unknown.
        """
        answer = self.call("POST", f"/namespaces/{namespace}/pods?dryRun=All", pod)
        assert answer.status_code in (201, 403), answer.text
        return answer.status_code == 403 and ": exceeded quota: " in answer.json()["message"]

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def pod(name: str, cpu: str = "10m") -> Manifest:
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    container = {"name": "c", "image": "registry.invalid/app:1", "resources": resources}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def quota(name: str, **hard: str) -> Manifest:
    return {"metadata": {"name": name}, "spec": {"hard": hard}}


def limit_range(name: str, most: str) -> Manifest:
    row = {"type": "Container", "max": {"cpu": most}}
    return {"metadata": {"name": name}, "spec": {"limits": [row]}}


def delay_until(condition: Callable[[], bool], *, in_a_row: int = 1) -> float:
    """Seconds until the condition holds, so many times in a row; LONGEST if it never does."""
    begun = time.monotonic()
    while (waited := time.monotonic() - begun) < LONGEST:
        if all(condition() for _ in range(in_a_row)):
            return waited
        time.sleep(0.005)
    return LONGEST


@dataclass
class Delays:
    """Measured delays by what happened."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, waited: float) -> None:
        """Note one."""
        self.seconds.setdefault(what, []).append(waited)

    def share_within(self, what: str, limit: float) -> float:
        """The share of those that took no longer."""
        found = self.seconds[what]
        return sum(each <= limit for each in found) / len(found)

    def report(self) -> str:
        """A histogram: how many of each kind took at most so long."""
        lines = ["seconds, at most".ljust(44) + "".join(f"{step:>6g}" for step in _STEPS)]
        for what, found in self.seconds.items():
            lines.append(f"{what:44}{''.join(f'{count:6}' for count in _counts(found))}")
        return "\n".join(lines)


def _counts(found: Sequence[float]) -> list[int]:
    return [sum(each <= step for each in found) for step in _STEPS]
