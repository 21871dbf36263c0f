"""A cluster that is only pretended: what its API server would list, and how it would answer."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sync.values import Listing
from tests.builders import container, pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from sync.errors import APIError

Manifest = dict[str, Any]


class PretendedCluster:
    """Answers as ``sync.client.Client`` does, from objects kept by kind and uid."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Manifest]] = defaultdict(dict)
        self.failing: dict[str, APIError] = {}
        self.listed: list[str] = []
        self.on_create: Callable[[Manifest], Manifest] | None = None
        self.release = "v1.36.3"

    def version(self) -> Manifest:
        if "version" in self.failing:
            raise self.failing["version"]
        return {"gitVersion": self.release}

    def put(self, obj: Manifest, kind: str = "Pod") -> Manifest:
        """Have the object be there; it gets a uid if it has none."""
        obj["metadata"].setdefault("uid", str(uuid4()))
        self.objects[kind][obj["metadata"]["uid"]] = obj
        return obj

    def take(self, obj: Manifest, kind: str = "Pod") -> None:
        """Have it be gone."""
        del self.objects[kind][obj["metadata"]["uid"]]

    def list(self, kind: str, namespace: str = "", *, page: int = 500) -> Listing:
        del namespace, page
        self.listed.append(kind)
        if kind in self.failing:
            raise self.failing[kind]
        return Listing(tuple(self.objects[kind].values()), "1", datetime.now(UTC))

    def list_resource(
        self, group: str, resource: str, namespace: str = "", *, contents: bool = False
    ) -> Listing:
        """Give what was put under the resource's whole name, such as ``deployments.apps``."""
        found = self.list(f"{resource}.{group}" if group else resource)
        items = [o for o in found.items if namespace in ("", o["metadata"]["namespace"])]
        bare = items if contents else [{"metadata": o["metadata"]} for o in items]
        return Listing(tuple(bare), found.resource_version, found.started)

    def get(self, kind: str, name: str, namespace: str = "") -> Manifest | None:
        del namespace
        if kind in self.failing:
            raise self.failing[kind]
        found = (o for o in self.objects[kind].values() if o["metadata"]["name"] == name)
        return next(found, None)

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        assert dry_run
        assert self.on_create is not None
        return self.on_create(manifest)


def live_pod(name: str, *, cpu: str = "", namespace: str = "team", **status: Any) -> Manifest:
    """A stored pod with a uid of its own."""
    made = pod(
        container(requests={"cpu": cpu} if cpu else {}),
        name=name,
        namespace=namespace,
        uid=str(uuid4()),
        resourceVersion="1",
    )
    return {**made, "status": {"phase": "Running", **status}}


def native_quota(hard: Manifest, used: Manifest, *, name: str = "rq") -> Manifest:
    """A ResourceQuota as a cluster has it."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "team", "uid": str(uuid4())},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used},
    }
