"""A second admission webhook, which refuses some pods after the portal has admitted them."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.cluster.certificates import issue, make_authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDINGS = ("0", "3", "7")
"""The name endings of refused pods: three of ten."""


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        allowed = not request["object"]["metadata"]["name"].endswith(ENDINGS)
        response = {"uid": request["uid"], "allowed": allowed}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = json.dumps({**review, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Suppress the log."""


@contextlib.contextmanager
def second_webhook(folder: Path, namespace: str) -> Iterator[dict[str, Any]]:
    """Serve it over TLS; yields the configuration that registers it for a namespace's pods."""
    folder.mkdir(parents=True)
    authority = make_authority(folder)
    pair = issue(folder, "tls", authority, subject="/CN=refusing")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield _configuration(server.server_port, authority.certificate.read_bytes(), namespace)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _configuration(port: int, authority: bytes, namespace: str) -> dict[str, Any]:
    bundle = base64.b64encode(authority).decode()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "refusing"},
        "webhooks": [
            {
                "name": "refusing.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{**rule, "resources": ["pods"]}],
            }
        ],
    }
