"""``python -m portal.health.probe``: exit code 0 while the web server of this machine is ready.

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
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared only


def main() -> int:
    """Call ``/readyz`` once; returns the exit code."""
    return 0 if is_ready(gather(os.environ, ROOT / ".env")) else 1


def is_ready(values: Mapping[str, str]) -> bool:
    """Whether ``/readyz`` answers 200 at the address of these settings."""
    connection = _connection(values)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200  # noqa: PLR2004  the status of a ready portal
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _connection(values: Mapping[str, str]) -> http.client.HTTPConnection:
    host = values.get("GATEHOUSE_LISTEN_HOST") or "127.0.0.1"
    host = _EVERYWHERE.get(host, host)
    if port := values.get("GATEHOUSE_PROBE_PORT"):
        return http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    place = host, int(values.get("GATEHOUSE_LISTEN_PORT") or "8000")
    certificate, key = values.get("GATEHOUSE_TLS_CERTIFICATE"), values.get("GATEHOUSE_TLS_KEY")
    if not certificate or not key:
        return http.client.HTTPConnection(*place, timeout=PATIENCE)
    # The certificate is for the portal's public name, and this connection never leaves the machine.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    # The server wants a client certificate then; its own is the only one at hand.
    if values.get("GATEHOUSE_TLS_CLIENT_CA"):
        context.load_cert_chain(ROOT / certificate, ROOT / key)
    return http.client.HTTPSConnection(*place, timeout=PATIENCE, context=context)


if __name__ == "__main__":
    sys.exit(main())
