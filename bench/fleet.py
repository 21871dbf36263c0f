"""``python -m bench.fleet PORT CERTIFICATE KEY``: many quiet API servers in one process.

Each path prefix ``/cluster-N`` is a cluster: a few namespaces with a quota, and pods. It answers
lists and watches, and after the first list nothing happens.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

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
LINES: Final = {
    plural: b"".join(
        json.dumps({"type": "ADDED", "object": each}).encode() + b"\n" for each in objects(kind)
    )
    for plural, kind in KINDS.items()
}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection."""
    try:
        while line := await reader.readline():
            target = urlsplit(line.split()[1].decode())
            while (await reader.readline()).strip():
                pass
            query = parse_qs(target.query)
            kind = KINDS.get(target.path.rsplit("/", 1)[-1])
            if kind is None:
                _send(writer, "404 Not Found", {"kind": "Status", "code": 404, "message": "none"})
            elif "watch" in query:
                await _watch(writer, target.path.rsplit("/", 1)[-1], kind, query)
                return
            else:
                page = {"kind": f"{kind}List", "metadata": {"resourceVersion": "9"}}
                _send(writer, "200 OK", {**page, "items": objects(kind)})
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


def _send(writer: asyncio.StreamWriter, status: str, body: Manifest) -> None:
    data = json.dumps(body).encode()
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)


async def _watch(
    writer: asyncio.StreamWriter, plural: str, kind: str, query: dict[str, list[str]]
) -> None:
    """The present objects first, if they are wanted; then a bookmark a minute, as servers send."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    annotations = {"k8s.io/initial-events-end": "true"}
    if "sendInitialEvents" in query:
        _chunk(writer, LINES[plural])
    while True:
        metadata = {"resourceVersion": "9", "annotations": annotations}
        mark = {"type": "BOOKMARK", "object": {"kind": kind, "metadata": metadata}}
        _chunk(writer, json.dumps(mark).encode() + b"\n")
        await writer.drain()
        annotations = {}
        await asyncio.sleep(60)


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    if data:
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))


async def main(port: int, certificate: str, key: str) -> None:
    """Serve until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(answer, "127.0.0.1", port, ssl=context, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:4]))
