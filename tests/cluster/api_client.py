"""Requests to an API server: one persistent connection per thread, JSON in and out."""

from __future__ import annotations

import http.client
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.wire import dumps, loads

if TYPE_CHECKING:
    from tests.cluster.servers import Cluster

_PATHS: Final = {
    "Namespace": ("/api/v1", "namespaces", False),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1", "priorityclasses", False),
    "StorageClass": ("/apis/storage.k8s.io/v1", "storageclasses", False),
    "RuntimeClass": ("/apis/node.k8s.io/v1", "runtimeclasses", False),
    **{
        f"{phase}AdmissionPolicy{binding}": (
            "/apis/admissionregistration.k8s.io/v1",
            f"{phase}AdmissionPolicy{binding}s".lower().replace("policys", "policies"),
            False,
        )
        for phase in ("Validating", "Mutating")
        for binding in ("", "Binding")
    },
    "Pod": ("/api/v1", "pods", True),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims", True),
    "Service": ("/api/v1", "services", True),
    "Secret": ("/api/v1", "secrets", True),
    "ConfigMap": ("/api/v1", "configmaps", True),
    "LimitRange": ("/api/v1", "limitranges", True),
    "ResourceQuota": ("/api/v1", "resourcequotas", True),
    "ResourceClaim": ("/apis/resource.k8s.io/v1", "resourceclaims", True),
    "Deployment": ("/apis/apps/v1", "deployments", True),
}


class Answer(NamedTuple):
    """The HTTP status and the object, or the Status."""

    code: int
    body: dict[str, Any]

    @property
    def is_allowed(self) -> bool:
        """Whether the API server accepted the request."""
        return self.code < 300

    @property
    def message(self) -> str:
        """The text of a refusal."""
        return "" if self.is_allowed else str(self.body.get("message", ""))


def path_of(kind: str, namespace: str, name: str = "", sub: str = "") -> str:
    """The path of a kind's objects, or of one of them."""
    prefix, resource, namespaced = _PATHS[kind]
    parts = [prefix, *(["namespaces", namespace] if namespaced else []), resource, name, sub]
    return "/".join(part for part in parts if part)


class ApiClient:
    """Sends requests to one cluster as its administrator, from any thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._own = cluster, threading.local()
        self._lines: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Close the connections of all threads."""
        for line in self._lines:
            line.close()

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send one request; reconnect once if the server has closed the connection."""
        try:
            return self._ask(method, path, body)
        except (http.client.HTTPException, OSError):
            self._own.line.close()
            self._own.line = None
            return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: object) -> Answer:
        line = getattr(self._own, "line", None)
        if line is None:
            line = self._own.line = self._cluster.connect()
            self._lines.append(line)
        headers = {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
        line.request(method, path, None if body is None else dumps(body).encode(), headers)
        response = line.getresponse()
        text = response.read()
        return Answer(response.status, loads(text) if text else {})

    def create(self, manifest: dict[str, Any], namespace: str = "", *, dry: bool = False) -> Answer:
        """Post an object."""
        path = path_of(manifest["kind"], namespace)
        return self.ask("POST", path + ("?dryRun=All" if dry else ""), manifest)

    def replace(
        self, manifest: dict[str, Any], namespace: str = "", *, sub: str = "", dry: bool = False
    ) -> Answer:
        """Put an object, or one of its subresources."""
        path = path_of(manifest["kind"], namespace, manifest["metadata"]["name"], sub)
        return self.ask("PUT", path + ("?dryRun=All" if dry else ""), manifest)

    def delete(self, kind: str, namespace: str, name: str) -> Answer:
        """Delete one object."""
        return self.ask("DELETE", path_of(kind, namespace, name))

    def read(self, kind: str, namespace: str, name: str = "") -> Answer:
        """Get one object, or the list of all of a kind."""
        return self.ask("GET", path_of(kind, namespace, name))
