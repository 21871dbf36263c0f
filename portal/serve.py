"""``python -m portal.serve``: free ports, certificate Files, then Server starts."""

from __future__ import annotations

import logging.config
import os
import platform
import socket
import sys
import tempfile
import time
from typing import Final

import django
from django.conf import settings

FREE_WITHIN: Final = 5.0  # seconds: processes of a server that ended may still hold its port
_PORT_STEP: Final = 0.1


def main() -> int:
    """Serve until SIGTERM; returns the exit code, EX_CONFIG if a restart cannot help."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    logging.config.dictConfig(settings.LOGGING)
    # Imported here: the modules below read settings, and a wrong setting must stop us in one line.
    from portal.serving.certificate import CertificateError  # noqa: PLC0415  needs settings

    host = settings.GATEHOUSE_LISTEN_HOST
    for port in filter(None, (settings.GATEHOUSE_LISTEN_PORT, settings.GATEHOUSE_PROBE_PORT)):
        if taken_reason := _why_taken(host, port):
            sys.stderr.write(f"gatehouse: port {port} of {host} cannot be used ({taken_reason})\n")
            return os.EX_CONFIG
    try:
        with tempfile.TemporaryDirectory(prefix="gatehouse-metrics-") as metrics_folder:
            # Several processes count into files in one folder, and /metrics adds them up.
            if settings.GATEHOUSE_WEB_WORKERS > 1:
                os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", metrics_folder)
            _start_server()
    except CertificateError as error:
        sys.stderr.write(f"gatehouse: TLS: {error}\n")
        return os.EX_CONFIG
    return 0


def _why_taken(host: str, port: int) -> str:
    """Why the port cannot be used, empty if it can; tries for a few seconds."""
    free_deadline = time.monotonic() + FREE_WITHIN
    while True:
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family) as port_probe:
                port_probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                port_probe.bind(address)
        except OSError as error:
            if time.monotonic() > free_deadline:
                return error.strerror or str(error)
            time.sleep(_PORT_STEP)
        else:
            return ""


def _start_server() -> None:
    django.setup()
    from portal.serving.certificate import Files  # noqa: PLC0415  needs Django to be set up
    from portal.serving.server import Server  # noqa: PLC0415  the same

    tls_files = None
    if settings.GATEHOUSE_TLS_CERTIFICATE and settings.GATEHOUSE_TLS_KEY:
        tls_files = Files(
            settings.GATEHOUSE_TLS_CERTIFICATE,
            settings.GATEHOUSE_TLS_KEY,
            settings.GATEHOUSE_TLS_CLIENT_CA,
        )
    server = Server(
        (settings.GATEHOUSE_LISTEN_HOST, settings.GATEHOUSE_LISTEN_PORT),
        workers=settings.GATEHOUSE_WEB_WORKERS,
        drain=settings.GATEHOUSE_DRAIN_SECONDS,
        files=tls_files,
        probe_port=settings.GATEHOUSE_PROBE_PORT,
    )
    logging.getLogger("portal").info(
        "gatehouse serves on %s:%d: %d web processes, %s, Python %s, process %d",
        settings.GATEHOUSE_LISTEN_HOST,
        settings.GATEHOUSE_LISTEN_PORT,
        settings.GATEHOUSE_WEB_WORKERS,
        settings.DATABASES["default"]["ENGINE"].rpartition(".")[2],
        platform.python_version(),
        os.getpid(),
    )
    server.serve()


if __name__ == "__main__":
    sys.exit(main())
