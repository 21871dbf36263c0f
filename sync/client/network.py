"""The HTTP transport to one API server: pinned addresses, TLS, limits of time and bytes.

No proxy, no redirect, no compression.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import tempfile
import time
from typing import TYPE_CHECKING, Any

import httpcore2
import httpx2

from sync.addresses import resolve
from sync.errors import GarbageError, TooLargeError, UnreachableError, UntrustedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sync.addresses import Network as Addresses
    from sync.values import Credentials, Limits


class Meter:
    """What is left of the time and the bytes that one answer may take."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.deadline = 0.0
        self.bytes_left = 0
        self.read_seconds = limits.read_seconds
        self.start(limits.seconds)

    def start(self, seconds: float, *, read_seconds: float | None = None) -> None:
        """Begin an answer that may take so many seconds, and so many for each piece."""
        self.deadline = time.monotonic() + seconds
        self.read_seconds = self.limits.read_seconds if read_seconds is None else read_seconds
        self.refill()

    def refill(self) -> None:
        """Allow a whole answer's bytes again."""
        self.bytes_left = self.limits.bytes

    def wait(self) -> float:
        """How long the next piece may take; raises UnreachableError when time is up."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise UnreachableError("the answer took too long", reason="Timeout")
        return min(left, self.read_seconds)

    def take(self, count: int) -> None:
        """Count bytes that came; raises TooLargeError beyond the limit."""
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise TooLargeError(f"an answer of more than {self.limits.bytes} bytes")


class Stream(httpcore2.NetworkStream):
    """A connection; the waits that the library asks for give way to the meter's."""

    def __init__(self, connection: socket.socket, meter: Meter) -> None:
        self._connection = connection
        self._meter = meter

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        """Read what there is; raises UnreachableError or GarbageError."""
        with _as_unreachable():
            self._connection.settimeout(self._meter.wait())
            data = self._connection.recv(max_bytes)
        self._meter.take(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        """Write all of it; raises UnreachableError."""
        rest = memoryview(buffer)
        with _as_unreachable():
            while rest:
                self._connection.settimeout(self._meter.wait())
                rest = rest[self._connection.send(rest) :]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> Stream:
        """Encrypt; raises UntrustedError for a certificate that proves nothing."""
        self._connection.settimeout(self._meter.limits.connect_seconds)
        try:
            with _as_unreachable():
                secured = ssl_context.wrap_socket(self._connection, server_hostname=server_hostname)
        except BaseException:
            self.close()
            raise
        return Stream(secured, self._meter)

    def get_extra_info(self, info: str) -> Any:
        """Give the library what it asks of a connection."""
        if info == "ssl_object" and isinstance(self._connection, ssl.SSLSocket):
            return self._connection
        if info == "is_readable":
            return _has_input(self._connection)
        return None


class Network(httpcore2.NetworkBackend):
    """Connects to the one server; its name is resolved at the first connection and never again."""

    def __init__(self, meter: Meter, allowed: Sequence[Addresses]) -> None:
        self._meter = meter
        self._allowed = allowed
        self._pinned: tuple[str, ...] = ()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> Stream:
        """Connect to the first of the pinned addresses that answers; raises UnreachableError."""
        self._pinned = self._pinned or resolve(host, port, self._allowed)
        for address in self._pinned[:-1]:
            with contextlib.suppress(UnreachableError):
                return self._connect(address, port)
        return self._connect(self._pinned[-1], port)

    def _connect(self, address: str, port: int) -> Stream:
        with _as_unreachable():
            wait = min(self._meter.wait(), self._meter.limits.connect_seconds)
            connection = socket.create_connection((address, port), wait)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Stream(connection, self._meter)


def tls_context(credentials: Credentials) -> ssl.SSLContext:
    """What the server must prove, and the client certificate if there is one.

    Raises UntrustedError for authorities or a certificate that cannot be read.
    """
    try:
        authorities = credentials.ca.decode("ascii") if credentials.ca else None
        context = _as_go_does(ssl.create_default_context(cadata=authorities))
        if credentials.certificate:
            with _as_file(credentials.certificate + b"\n" + credentials.key) as path:
                context.load_cert_chain(path)
    except (ssl.SSLError, ValueError) as error:
        raise UntrustedError(
            f"certificates that cannot be read: {type(error).__name__}", reason="BadCertificate"
        ) from None
    return context


def _as_go_does(context: ssl.SSLContext) -> ssl.SSLContext:
    """Verify what clusters' own clients verify, whatever this Python's defaults are.

    From 3.13 on, Python refuses authorities without key usage (``VERIFY_X509_STRICT``), which many
    clusters have had for years and kubectl takes; it then also takes each given certificate for an
    authority by itself (``VERIFY_X509_PARTIAL_CHAIN``), as Go always did. Names, times, signatures
    and whether an authority is one at all are verified in any case.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


@contextlib.contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Lend bytes a file's name, as the library takes keys from files only; kept in memory.

    Where there are no files in memory, one that only we can read is there for a moment.
    """
    if not hasattr(os, "memfd_create"):  # pragma: no cover - only other systems than Linux
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _as_unreachable() -> Iterator[None]:
    """Turn the system's troubles into ours."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise UntrustedError(f"x509: {error.verify_message}", reason="Untrusted") from None
    except TimeoutError:
        raise UnreachableError("no answer in time", reason="Timeout") from None
    except ssl.SSLError as error:
        raise UnreachableError(f"TLS: {error.reason or error}", reason="TLS") from None
    except OSError as error:
        raise UnreachableError(error.strerror or str(error), reason="Disconnected") from None


def _has_input(connection: socket.socket) -> bool:
    """Whether an idle connection has something to read, or is closed: both mean its end."""
    if connection.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


_REDIRECTS = range(300, 400)


class Transport(httpx2.BaseTransport):
    """Sends requests of the library; raises APIError's family and nothing else."""

    def __init__(
        self, credentials: Credentials, meter: Meter, allowed: Sequence[Addresses]
    ) -> None:
        self._name = credentials.tls_server_name
        self._pool = httpcore2.ConnectionPool(
            ssl_context=tls_context(credentials),
            max_connections=2,
            keepalive_expiry=20,
            network_backend=Network(meter, allowed),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the answer's body is read by whoever asked."""
        request.headers["Accept-Encoding"] = "identity"
        with _as_api_errors():
            answer = self._pool.handle_request(self._translated(request))
        response = httpx2.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.iter_stream(), answer)
        )
        try:
            _refuse_tricks(response)
        except GarbageError:
            response.close()
            raise
        return response

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _translated(self, request: httpx2.Request) -> httpcore2.Request:
        url = request.url
        return httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.read(),
            extensions={"sni_hostname": self._name} if self._name else {},
        )


class _Body(httpx2.SyncByteStream):
    """The bytes of an answer as they come."""

    def __init__(self, pieces: Iterable[bytes], answer: httpcore2.Response) -> None:
        self._pieces = pieces
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_api_errors():
            yield from self._pieces

    def close(self) -> None:
        with _as_api_errors():
            self._answer.close()


def _refuse_tricks(response: httpx2.Response) -> None:
    """Refuse what could lead elsewhere, or grow without being counted."""
    if response.status_code in _REDIRECTS:
        raise GarbageError("a redirect", code=response.status_code, reason="Redirect")
    coding = response.headers.get("Content-Encoding", "identity")
    if coding != "identity":
        raise GarbageError(f"a compressed answer ({coding[:20]!r})", reason="Compressed")


@contextlib.contextmanager
def _as_api_errors() -> Iterator[None]:
    """Turn the library's troubles into ours; those of the network are ours already."""
    try:
        yield
    except httpcore2.RemoteProtocolError as error:
        text = str(error)
        if "disconnect" in text or "closed connection" in text:
            raise UnreachableError("the server hung up", reason="Disconnected") from None
        raise GarbageError(f"an answer that is no HTTP: {text[:200]}") from None
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        raise UnreachableError(str(error)[:200] or type(error).__name__) from None
