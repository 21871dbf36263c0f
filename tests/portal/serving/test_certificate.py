"""Certificate files: made for trying, proven to fit, noticed when they change."""

from __future__ import annotations

import dataclasses
import http.server
import ssl
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from portal.dev import self_signed
from portal.health import probe
from portal.serving.certificate import (
    CertificateError,
    Files,
    LiveContext,
    PrivateCopies,
    Watch,
    context_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def files(tmp_path: Path) -> Files:
    assert self_signed.main(["--folder", str(tmp_path)]) == 0
    return Files(tmp_path / "tls.crt", tmp_path / "tls.key")


@pytest.fixture
def changes() -> list[str]:
    return []


@pytest.fixture
def watch(files: Files, changes: list[str]) -> Watch:
    return Watch(files, lambda: changes.append("changed"))


def test_certificate_for_trying_is_good_for_its_hosts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--folder", str(tmp_path), "--host", "gatehouse.test", "--host", "::1"]
    assert self_signed.main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"GATEHOUSE_TLS_CERTIFICATE={tmp_path / 'tls.crt'}",
        f"GATEHOUSE_TLS_KEY={tmp_path / 'tls.key'}",
    ]
    assert (tmp_path / "tls.key").stat().st_mode & 0o077 == 0
    context_of(Files(tmp_path / "tls.crt", tmp_path / "tls.key").read())


def test_certificate_for_trying_needs_openssl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert self_signed.main([]) == 1
    assert "there is no openssl" in capsys.readouterr().err


def test_invalid_host_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert self_signed.main(["--folder", str(tmp_path), "--host", "a,b:c"]) == 1
    assert "openssl failed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_key_of_another_certificate_does_not_fit(files: Files, tmp_path: Path) -> None:
    one = files.read()
    self_signed.main(["--folder", str(tmp_path)])
    with pytest.raises(CertificateError, match="key values mismatch"):
        context_of(dataclasses.replace(one, key=files.read().key))


@pytest.mark.parametrize("name", ["certificate", "key", "authority"])
def test_file_without_pem_is_reported(files: Files, name: str) -> None:
    with pytest.raises(CertificateError):
        context_of(dataclasses.replace(files.read(), **{name: b"nothing"}))


def test_authority_is_read_with_the_pair(files: Files) -> None:
    with_authority = dataclasses.replace(files, authority=files.certificate).read()
    context_of(with_authority)
    copies = PrivateCopies(with_authority)
    assert [Path(path).read_bytes() for path in copies.paths] == [
        with_authority.certificate,
        with_authority.key,
        with_authority.authority,
    ]
    copies.close()


def test_authority_without_a_certificate_is_reported(files: Files, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    with pytest.raises(CertificateError):
        context_of(dataclasses.replace(files, authority=tmp_path / "ca.crt").read())


def test_client_certificates_are_required_where_an_authority_is_named(files: Files) -> None:
    assert context_of(files.read()).verify_mode == ssl.CERT_NONE
    with_authority = dataclasses.replace(files, authority=files.certificate)
    required = context_of(with_authority.read())
    assert required.verify_mode == ssl.CERT_REQUIRED
    assert len(required.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("version", "is_taken"),
    [
        (ssl.TLSVersion.TLSv1_1, False),
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, True),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_of_tls_are_refused(
    files: Files, version: ssl.TLSVersion, *, is_taken: bool
) -> None:
    caller = ssl.create_default_context(cafile=files.certificate)
    caller.set_ciphers("ALL:@SECLEVEL=0")
    caller.minimum_version = caller.maximum_version = version
    assert shakes_hands(context_of(files.read()), caller) is is_taken


def shakes_hands(ours: ssl.SSLContext, callers: ssl.SSLContext) -> bool:
    """Whether two sides come to an agreement, in memory."""
    to_us, to_caller = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        ours.wrap_bio(to_us, to_caller, server_side=True),
        callers.wrap_bio(to_caller, to_us, server_hostname="localhost"),
    ]
    for _ in range(4):
        waiting = []
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                waiting.append(side)
            except ssl.SSLError:
                return False
        if not waiting:
            return True
    return False


def test_new_connections_have_the_newest_certificate_that_can_be_used(
    files: Files, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live_context = LiveContext(files)
    first = live_context.current()
    assert live_context.current() is first
    key = files.key.read_bytes()
    self_signed.main(["--folder", str(tmp_path)])
    live_context.renew()
    second = live_context.current()
    assert second is not first
    assert caplog.records == []
    files.key.write_bytes(key)
    live_context.renew()
    files.key.unlink()
    live_context.renew()
    assert live_context.current() is second
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


def test_web_process_does_not_start_without_a_pair_that_fits(files: Files) -> None:
    files.key.write_text("nothing")
    with pytest.raises(CertificateError):
        LiveContext(files)


def test_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"tls\.crt cannot be read"):
        Files(tmp_path / "tls.crt", tmp_path / "tls.key").read()


def test_change_is_reported_once_it_has_settled(
    watch: Watch, changes: list[str], tmp_path: Path
) -> None:
    watch.look()
    self_signed.main(["--folder", str(tmp_path)])
    watch.look()
    assert changes == []
    watch.look()
    watch.look()
    assert changes == ["changed"]


@pytest.mark.parametrize("content", [b"half", None], ids=["half", "gone"])
def test_change_that_cannot_be_used_is_logged_once(
    watch: Watch,
    changes: list[str],
    files: Files,
    content: bytes | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    files.key.unlink() if content is None else files.key.write_bytes(content)
    for _ in range(4):
        watch.look()
    assert changes == []
    assert [record.levelname for record in caplog.records] == ["ERROR"]


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def port(files: Files) -> Iterator[int]:
    """Where somebody answers by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    with http.server.HTTPServer(("127.0.0.1", 0), Ready) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_probe_follows_the_settings(files: Files, port: int) -> None:
    plain = {"GATEHOUSE_LISTEN_HOST": "0.0.0.0", "GATEHOUSE_LISTEN_PORT": str(port)}  # noqa: S104 - compared only
    pair = {
        "GATEHOUSE_TLS_CERTIFICATE": str(files.certificate),
        "GATEHOUSE_TLS_KEY": str(files.key),
    }
    assert probe.is_ready({**plain, **pair})
    assert probe.is_ready({**plain, **pair, "GATEHOUSE_TLS_CLIENT_CA": str(files.certificate)})
    assert not probe.is_ready(plain)


def test_probe_reports_by_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEHOUSE_LISTEN_PORT", "1")
    assert probe.main() == 1
