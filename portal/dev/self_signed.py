"""``python -m portal.dev.self_signed``: a certificate to try TLS; needs ``openssl``.

Plain Python. A cluster in earnest takes one from its own authority.
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


def main(words: list[str] | None = None) -> int:
    """Make it and print the settings that use it; returns the exit code."""
    options = _read_words(words)
    openssl = shutil.which("openssl")
    if not openssl:
        sys.stderr.write("gatehouse: there is no openssl; on Debian: apt-get install openssl\n")
        return 1
    folder = Path(options.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificate, key = folder / "tls.crt", folder / "tls.key"
    done = _make(openssl, options.host, certificate, key)
    if done.returncode:
        sys.stderr.write(f"gatehouse: openssl failed: {done.stderr.strip()}\n")
        return 1
    sys.stdout.write(f"GATEHOUSE_TLS_CERTIFICATE={certificate}\nGATEHOUSE_TLS_KEY={key}\n")
    return 0


def _read_words(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m portal.dev.self_signed",
        description=f"Make a self-signed certificate that is good for {DAYS} days.",
    )
    parser.add_argument(
        "--host",
        action="append",
        help="a name or address it is for, may be repeated (default: localhost and 127.0.0.1)",
    )
    parser.add_argument("--folder", default=str(ROOT / "var" / "tls"), help="where to put it")
    return parser.parse_args(words)


def _make(
    openssl: str, hosts: list[str] | None, certificate: Path, key: Path
) -> subprocess.CompletedProcess[str]:
    """Make both beside their places and then put them there: a running server sees no half."""
    names = hosts or ["localhost", "127.0.0.1"]
    drafts = [path.with_name(f".{path.name}.{os.getpid()}") for path in (certificate, key)]
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", str(DAYS), "-subj", f"/CN={names[0]}"]
    command += ["-addext", f"subjectAltName={','.join(map(_alternative, names))}"]
    # Clients that are given it as an authority may want it to say so: Python from 3.13 on does.
    command += ["-addext", "keyUsage=critical,digitalSignature,keyCertSign"]
    command += ["-out", str(drafts[0]), "-keyout", str(drafts[1])]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603  our own words
    for draft, place in zip(drafts, (certificate, key), strict=True):
        if done.returncode:
            draft.unlink(missing_ok=True)
        else:
            draft.replace(place)
    return done


def _alternative(name: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        return f"DNS:{name}"


if __name__ == "__main__":
    sys.exit(main())
