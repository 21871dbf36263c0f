"""``python -m bench.fleet PORT CERTIFICATE KEY``: many quiet API servers in one process.

Each path prefix ``/cluster-N`` is a cluster: a few namespaces with a quota, and pods. It answers
lists and watches, and takes the status of quotas; after the first list nothing else happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import sys
from collections import defaultdict
from itertools import count
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

BOOKMARKS: Final = 60.0
"""Seconds between two bookmarks of a watch."""
PODS: Final = 500
NAMESPACES: Final = 10
Manifest = dict[str, Any]


def objects(kind: str) -> list[Manifest]:
    """The objects of a kind in each cluster."""
    match kind:
        case "Namespace":
            return [_object(kind, f"team-{number}") for number in range(NAMESPACES)]
        case "ResourceQuota":
            spec = {"hard": {"pods": "1000", "requests.cpu": "1000", "services": "50"}}
            return [
                _object(kind, "quota", f"team-{number}", spec=spec) for number in range(NAMESPACES)
            ]
        case "Pod":
            return [_pod(number) for number in range(PODS)]
    return []


def _object(kind: str, name: str, namespace: str = "", **more: Any) -> Manifest:
    metadata = {"name": name, "uid": f"{kind}-{namespace}-{name}", "resourceVersion": "7"}
    if namespace:
        metadata["namespace"] = namespace
    version = "scheduling.k8s.io/v1" if kind == "PriorityClass" else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def _pod(number: int) -> Manifest:
    """A pod as clusters have it: most of it is nothing that quotas read."""
    container = {
        "name": "app",
        "image": "registry.invalid/team/application:1.2.3",
        "env": [{"name": f"SETTING_{n}", "value": "v" * 30} for n in range(20)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1"}},
        "volumeMounts": [{"name": "data", "mountPath": f"/data/{n}"} for n in range(5)],
    }
    pod = _object("Pod", f"app-{number}", f"team-{number % NAMESPACES}")
    pod["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}]
    spec = {"containers": [container] * 2, "volumes": [{"name": "data", "emptyDir": {}}]}
    return {**pod, "spec": spec, "status": {"phase": "Running", "qosClass": "Burstable"}}


KINDS: Final = {
    "namespaces": "Namespace",
    "limitranges": "LimitRange",
    "resourcequotas": "ResourceQuota",
    "priorityclasses": "PriorityClass",
    "pods": "Pod",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "services": "Service",
}


class _Server:
    """One process of API servers: what they show, the statuses of their quotas, open watches."""

    def __init__(self) -> None:
        self._watches: dict[str, set[asyncio.Queue[bytes]]] = defaultdict(set)
        self._versions = count(10)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while line := await reader.readline():
                body = await _body_after(reader)
                target = urlsplit(line.split()[1].decode())
                _, cluster, *_, plural = target.path.split("/")
                query = parse_qs(target.query)
                if plural == "status":
                    self._replace_status(writer, cluster, body)
                elif plural not in KINDS:
                    _send(writer, "404 Not Found", {"kind": "Status", "code": 404, "message": "no"})
                elif "watch" in query:
                    await self._watch(writer, cluster, plural, query)
                    return
                else:
                    page = {"kind": f"{KINDS[plural]}List", "metadata": {"resourceVersion": "9"}}
                    _send(writer, "200 OK", {**page, "items": objects(KINDS[plural])})
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _replace_status(self, writer: asyncio.StreamWriter, cluster: str, body: bytes) -> None:
        """Store a quota as it was sent, and show it to the watches."""
        quota = json.loads(body)
        quota["metadata"]["resourceVersion"] = str(next(self._versions))
        for watch in self._watches[cluster]:
            watch.put_nowait(_line("MODIFIED", quota))
        _send(writer, "200 OK", quota)

    async def _watch(
        self,
        writer: asyncio.StreamWriter,
        cluster: str,
        plural: str,
        query: dict[str, list[str]],
    ) -> None:
        """The present objects first, if they are wanted; then changes, and a bookmark a minute."""
        changes: asyncio.Queue[bytes] = asyncio.Queue()
        if plural == "resourcequotas":
            self._watches[cluster].add(changes)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        annotations = {"k8s.io/initial-events-end": "true"}
        if "sendInitialEvents" in query:
            _chunk(writer, LINES[plural])
        try:
            while True:
                version = str(next(self._versions))
                metadata = {"resourceVersion": version, "annotations": annotations}
                _chunk(writer, _line("BOOKMARK", {"kind": KINDS[plural], "metadata": metadata}))
                await writer.drain()
                annotations = {}
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BOOKMARKS):
                        while True:
                            _chunk(writer, await changes.get())
        finally:
            self._watches[cluster].discard(changes)


async def _body_after(reader: asyncio.StreamReader) -> bytes:
    """The body of a request whose first line is read."""
    length = 0
    while header := (await reader.readline()).strip():
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return await reader.readexactly(length)


def _send(writer: asyncio.StreamWriter, status: str, body: Manifest) -> None:
    data = json.dumps(body).encode()
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)


def _line(event: str, item: Manifest) -> bytes:
    return json.dumps({"type": event, "object": item}).encode() + b"\n"


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    if data:
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))


LINES: Final = {
    plural: b"".join(_line("ADDED", each) for each in objects(kind))
    for plural, kind in KINDS.items()
}


async def main(port: int, certificate: str, key: str) -> None:
    """Serve until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    fleet = _Server()
    serving = await asyncio.start_server(fleet.answer, "127.0.0.1", port, ssl=context, backlog=2048)
    await serving.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:4]))
