"""``python -m portal.health.probe``: one HTTP or TLS call of /readyz on this machine; exit code 0.

For health checks of containers, by HTTP or TLS depending on the settings. Plain Python, so that it
starts quickly.
"""

from __future__ import annotations

import http.client
import os
import ssl
import sys
from typing import TYPE_CHECKING, Final

from portal.env import gather
from portal.machine import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE: Final = 2.0  # seconds
_WILDCARD_HOSTS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared only


def main() -> int:
    """Call ``/readyz`` once; returns the exit code."""
    return 0 if is_ready(gather(os.environ, ROOT / ".env")) else 1


def is_ready(setting_values: Mapping[str, str]) -> bool:
    """Whether ``/readyz`` answers 200 at the address of these settings."""
    probe_connection = _probe_connection(setting_values)
    try:
        probe_connection.request("GET", "/readyz")
        return probe_connection.getresponse().status == 200  # noqa: PLR2004  the status of a ready portal
    except (OSError, http.client.HTTPException):
        return False
    finally:
        probe_connection.close()


def _probe_connection(values: Mapping[str, str]) -> http.client.HTTPConnection:
    probe_host = values.get("GATEHOUSE_LISTEN_HOST") or "127.0.0.1"
    probe_host = _WILDCARD_HOSTS.get(probe_host, probe_host)
    if probe_port := values.get("GATEHOUSE_PROBE_PORT"):
        return http.client.HTTPConnection(probe_host, int(probe_port), timeout=PATIENCE)
    probe_place = probe_host, int(values.get("GATEHOUSE_LISTEN_PORT") or "8000")
    certificate_file, key = values.get("GATEHOUSE_TLS_CERTIFICATE"), values.get("GATEHOUSE_TLS_KEY")
    if not certificate_file or not key:
        return http.client.HTTPConnection(*probe_place, timeout=PATIENCE)
    # The certificate is for the portal's public name, and this connection never leaves the machine.
    tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls_context.check_hostname, tls_context.verify_mode = False, ssl.CERT_NONE
    # The server wants a client certificate then; its own is the only one at hand.
    if values.get("GATEHOUSE_TLS_CLIENT_CA"):
        tls_context.load_cert_chain(ROOT / certificate_file, ROOT / key)
    return http.client.HTTPSConnection(*probe_place, timeout=PATIENCE, context=tls_context)


if __name__ == "__main__":
    sys.exit(main())
