"""The web server with TLS: its protocol versions, and replacement of its certificate under load."""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import subprocess
import sys
import warnings
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from portal.health.probe import is_ready
from tests.callers import answers_of, calling, insecure
from tests.processes import ROOT, children_of, free_port, running, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.servers


@dataclass
class Web:
    """A started web server."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    folder: Path

    def certificate(self) -> bytes:
        return ssl.PEM_cert_to_DER_cert((self.folder / "tls.crt").read_text())

    @contextmanager
    def connection(self, context: ssl.SSLContext) -> Iterator[http.client.HTTPSConnection]:
        """A connection that has received one answer."""
        line = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=context)
        with closing(line):
            line.request("GET", "/livez")
            assert line.getresponse().read() == b"ok"
            yield line


def renew(folder: Path) -> None:
    words = [sys.executable, "-m", "portal.dev.self_signed", "--folder", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - our own words


def issue(folder: Path) -> None:
    """An authority, and a certificate from it for both sides."""
    folder.mkdir()
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    new += ["-nodes", "-subj", "/CN=gatehouse"]
    own = ["-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"]
    usage = ["-addext", "keyUsage=critical,digitalSignature"]
    signs = ["-addext", "keyUsage=critical,digitalSignature,keyCertSign"]
    for name, more in (("ca", signs), ("tls", own + usage)):
        words = [*new, *more, "-keyout", f"{name}.key", "-out", f"{name}.crt"]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)  # noqa: S603 - our own words


def old_tls() -> ssl.SSLContext:
    """TLS versions that no API server uses any more."""
    with warnings.catch_warnings(action="ignore"):
        context = insecure(ssl.TLSVersion.TLSv1_1)
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


@pytest.fixture
def web(
    surroundings: dict[str, str], tmp_path: Path, prepared: Any
) -> Callable[..., contextmanager[Web]]:
    folder = tmp_path / "tls"

    @contextmanager
    def start(name: str = "web", **more: str) -> Iterator[Web]:
        if not folder.exists():
            renew(folder)
        port, log = free_port(), tmp_path / f"{name}.log"
        around = {
            **surroundings,
            **prepared.settings,
            "GATEHOUSE_LISTEN_PORT": str(port),
            "GATEHOUSE_WEB_WORKERS": "2",
            "GATEHOUSE_DRAIN_SECONDS": "2",
            "GATEHOUSE_TLS_CERTIFICATE": str(folder / "tls.crt"),
            "GATEHOUSE_TLS_KEY": str(folder / "tls.key"),
            **more,
        }
        with running([sys.executable, "-m", "portal.serve"], around, log) as process:
            wait_for(lambda: is_ready(around) or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield Web(process, port, log, folder)

    return start


def test_tls_is_new_enough_and_connections_are_kept(
    web: Callable[..., contextmanager[Web]],
) -> None:
    with web() as started:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with started.connection(insecure(version)) as line:
                kept = line.sock
                line.request("GET", "/livez")
                assert line.getresponse().read() == b"ok"
                assert line.sock is kept
        with pytest.raises(ssl.SSLError), started.connection(old_tls()):
            pass


def test_new_certificate_is_shown_and_no_call_is_lost(
    web: Callable[..., contextmanager[Web]],
) -> None:
    with web() as started, calling(lambda: started.port, tls=True) as callers:
        answers_of(callers, 30)
        before = started.certificate()
        renew(started.folder)
        wait_for(lambda: "web processes show the new certificate" in started.log.read_text())
        with started.connection(insecure()) as line:
            assert line.sock.getpeercert(binary_form=True) == started.certificate()  # type: ignore[attr-defined]
        answers_of(callers, 60)
        assert callers.failures == []
        assert before in callers.certificates


def test_processes_are_replaced_and_no_call_is_lost(
    web: Callable[..., contextmanager[Web]],
) -> None:
    with web() as started, calling(lambda: started.port, tls=True) as callers:
        answers_of(callers, 30)
        before = children_of(started.process.pid)
        os.kill(started.process.pid, signal.SIGHUP)
        wait_for(lambda: "web processes were replaced" in started.log.read_text())
        answers_of(callers, 60)
        assert callers.failures == []
        assert not set(before) & set(children_of(started.process.pid))


def test_processes_end_with_their_parent(web: Callable[..., contextmanager[Web]]) -> None:
    with web() as started:
        left = children_of(started.process.pid)
        started.process.kill()
        wait_for(lambda: not any(Path(f"/proc/{each}").exists() for each in left))


def test_pair_that_does_not_fit_is_kept_out(web: Callable[..., contextmanager[Web]]) -> None:
    with web() as started:
        before, key = started.certificate(), (started.folder / "tls.key").read_bytes()
        (started.folder / "tls.key").write_bytes(key[:100])
        wait_for(lambda: "the certificate in use stays" in started.log.read_text())
        os.kill(started.process.pid, signal.SIGHUP)
        wait_for(lambda: started.log.read_text().count("the certificate in use stays") > 1)
        with started.connection(insecure()) as line:
            assert line.sock.getpeercert(binary_form=True) == before  # type: ignore[attr-defined]


def test_clients_without_a_certificate_are_rejected(
    web: Callable[..., contextmanager[Web]], tmp_path: Path
) -> None:
    issue(tmp_path / "tls")
    with web(GATEHOUSE_TLS_CLIENT_CA=str(tmp_path / "tls" / "ca.crt")) as started:
        strange = (OSError, http.client.HTTPException)
        with pytest.raises(strange), started.connection(insecure()):
            pass
        known = insecure()
        known.load_cert_chain(started.folder / "tls.crt", started.folder / "tls.key")
        with started.connection(known):
            pass


def test_wrong_pair_stops_the_start_in_one_line(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    renew(tmp_path)
    (tmp_path / "tls.key").write_text("nothing")
    surroundings |= {
        "GATEHOUSE_TLS_CERTIFICATE": str(tmp_path / "tls.crt"),
        "GATEHOUSE_TLS_KEY": str(tmp_path / "tls.key"),
    }
    words = [sys.executable, "-m", "portal.serve"]
    done = subprocess.run(words, env=surroundings, cwd=ROOT, capture_output=True, check=False)  # noqa: S603 - our own words
    assert done.returncode == 78
    assert done.stderr.startswith(b"gatehouse: TLS: certificate and key cannot be used")
    assert len(done.stderr.splitlines()) == 1
