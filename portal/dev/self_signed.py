"""``python -m portal.dev.self_signed``: ``openssl`` makes a certificate to try TLS, for hosts.

Plain Python. A production cluster needs one from its own authority.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from portal.machine import ROOT

DAYS: Final = 30


def main(arguments: list[str] | None = None) -> int:
    """Make the certificate and print the settings that use it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m portal.dev.self_signed",
        description=f"Make a self-signed certificate that is valid for {DAYS} days.",
    )
    hosts_help = "a name or address, may be repeated (default: localhost and 127.0.0.1)"
    parser.add_argument("--host", action="append", help=hosts_help)
    parser.add_argument("--folder", default=str(ROOT / "var" / "tls"), help="where to put it")
    options = parser.parse_args(arguments)
    openssl = shutil.which("openssl")
    if not openssl:
        sys.stderr.write("gatehouse: there is no openssl; on Debian: apt-get install openssl\n")
        return 1
    tls_folder = Path(options.folder)
    tls_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificate, key = tls_folder / "tls.crt", tls_folder / "tls.key"
    openssl_run = _make_certificate(openssl, options.host, certificate, key)
    if openssl_run.returncode:
        sys.stderr.write(f"gatehouse: openssl failed: {openssl_run.stderr.strip()}\n")
        return 1
    sys.stdout.write(f"GATEHOUSE_TLS_CERTIFICATE={certificate}\nGATEHOUSE_TLS_KEY={key}\n")
    return 0


def _make_certificate(
    openssl: str, hosts: list[str] | None, certificate: Path, key: Path
) -> subprocess.CompletedProcess[str]:
    # Both are made beside their places and then moved: a running server never reads half a file.
    host_names = hosts or ["localhost", "127.0.0.1"]
    draft_files = [path.with_name(f".{path.name}.{os.getpid()}") for path in (certificate, key)]
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", str(DAYS), "-subj", f"/CN={host_names[0]}"]
    command += ["-addext", f"subjectAltName={','.join(map(_alternative_name, host_names))}"]
    # Clients that trust it as an authority may require this usage: Python does from 3.13 on.
    command += ["-addext", "keyUsage=critical,digitalSignature,keyCertSign"]
    command += ["-out", str(draft_files[0]), "-keyout", str(draft_files[1])]
    openssl_run = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603  our own words
    for draft_file, place in zip(draft_files, (certificate, key), strict=True):
        if openssl_run.returncode:
            draft_file.unlink(missing_ok=True)
        else:
            draft_file.replace(place)
    return openssl_run


def _alternative_name(host_name: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(host_name)}"
    except ValueError:
        return f"DNS:{host_name}"


if __name__ == "__main__":
    sys.exit(main())
