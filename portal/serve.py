"""``python -m portal.serve``: the web server, as ``make run`` and the container image start it."""

from __future__ import annotations

import logging.config
import os
import sys
import tempfile

from django.conf import settings


def main() -> int:
    """Serve until SIGTERM; returns the exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    logging.config.dictConfig(settings.LOGGING)
    # What serves is imported once the settings are known to be good.
    from portal.serving.certificate import CertificateError  # noqa: PLC0415  needs settings
    from portal.serving.server import ProbePortError  # noqa: PLC0415  beside it

    try:
        with tempfile.TemporaryDirectory(prefix="gatehouse-metrics-") as folder:
            # Several processes count into files, so that /metrics can add them up.
            if settings.GATEHOUSE_WEB_WORKERS > 1:
                os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", folder)
            _serve()
    except CertificateError as error:
        sys.stderr.write(f"gatehouse: TLS: {error}\n")
        return 1
    except ProbePortError as error:
        sys.stderr.write(f"gatehouse: GATEHOUSE_PROBE_PORT: {error}\n")
        return 1
    return 0


def _serve() -> None:
    from portal.serving.certificate import Files  # noqa: PLC0415  needs settings
    from portal.serving.server import Server  # noqa: PLC0415  beside it
    from portal.serving.watch import Watch  # noqa: PLC0415  beside it

    files = None
    if settings.GATEHOUSE_TLS_CERTIFICATE and settings.GATEHOUSE_TLS_KEY:
        files = Files(
            settings.GATEHOUSE_TLS_CERTIFICATE,
            settings.GATEHOUSE_TLS_KEY,
            settings.GATEHOUSE_TLS_CLIENT_CA,
        )
    server = Server(
        (settings.GATEHOUSE_LISTEN_HOST, settings.GATEHOUSE_LISTEN_PORT),
        workers=settings.GATEHOUSE_WEB_WORKERS,
        drain=settings.GATEHOUSE_DRAIN_SECONDS,
        files=files,
        probe_port=settings.GATEHOUSE_PROBE_PORT,
    )
    if files:
        Watch(files, server.signal_handler_reload).start()
    server.serve()


if __name__ == "__main__":
    sys.exit(main())
