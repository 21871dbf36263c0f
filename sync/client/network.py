"""HTTP Transport on own sockets: pinned addresses, TLS context, Meter of seconds and bytes.

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
    """The time and the bytes that remain for one answer."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.deadline = 0.0
        self.bytes_left = 0
        self.read_seconds = limits.read_seconds
        self.start(limits.seconds)

    def start(self, seconds: float, *, read_seconds: float | None = None) -> None:
        """Begin an answer with a limit for the whole, and one for the wait for each piece."""
        self.deadline = time.monotonic() + seconds
        self.read_seconds = self.limits.read_seconds if read_seconds is None else read_seconds
        self.bytes_left = self.limits.bytes

    def wait(self) -> float:
        """The seconds that the next piece may take; raises UnreachableError at the deadline."""
        seconds_left = self.deadline - time.monotonic()
        if seconds_left <= 0:
            raise UnreachableError("the answer took too long", reason="Timeout")
        return min(seconds_left, self.read_seconds)

    def take(self, count: int) -> None:
        """Count received bytes; raises TooLargeError beyond the limit."""
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise TooLargeError(f"an answer of more than {self.limits.bytes} bytes")


class Stream(httpcore2.NetworkStream):
    """A connection whose timeouts come from the meter, not from the library."""

    def __init__(self, connection: socket.socket, meter: Meter) -> None:
        self._connection = connection
        self._meter = meter

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        """Read what has arrived; raises UnreachableError or TooLargeError."""
        with _as_unreachable():
            self._connection.settimeout(self._meter.wait())
            received = self._connection.recv(max_bytes)
        self._meter.take(len(received))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        """Write the whole buffer; raises UnreachableError."""
        unsent = memoryview(buffer)
        with _as_unreachable():
            while unsent:
                self._connection.settimeout(self._meter.wait())
                unsent = unsent[self._connection.send(unsent) :]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> Stream:
        """Encrypt the connection; raises UntrustedError for an invalid server certificate."""
        self._connection.settimeout(self._meter.limits.connect_seconds)
        try:
            with _as_unreachable():
                secured = ssl_context.wrap_socket(self._connection, server_hostname=server_hostname)
        except BaseException:
            # The pool does not own the connection yet, so nobody else would close it.
            self.close()
            raise
        return Stream(secured, self._meter)

    def get_extra_info(self, info: str) -> Any:
        """Answer the library's questions about a connection."""
        if info == "ssl_object" and isinstance(self._connection, ssl.SSLSocket):
            return self._connection
        if info != "is_readable":
            return None
        # An idle connection with input has been closed, or desynchronized: the pool drops it.
        if self._connection.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        return bool(poll.poll(0))


class Network(httpcore2.NetworkBackend):
    """Connects to the one server, at the addresses that its name had at the first connection."""

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
        """Connect to the first pinned address that answers; raises UnreachableError."""
        # Resolved once: a second answer of DNS could lead past the check of addresses (rebinding).
        self._pinned = self._pinned or resolve(host, port, self._allowed)
        for address in self._pinned[:-1]:
            with contextlib.suppress(UnreachableError):
                return self._connect(address, port)
        return self._connect(self._pinned[-1], port)

    def _connect(self, address: str, port: int) -> Stream:
        with _as_unreachable():
            connect_wait = min(self._meter.wait(), self._meter.limits.connect_seconds)
            connection = socket.create_connection((address, port), connect_wait)
            # Head and body of a request are two writes: Nagle's algorithm would delay the second.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Stream(connection, self._meter)


def tls_context(credentials: Credentials) -> ssl.SSLContext:
    """The TLS settings of a connection: its authorities, and a client certificate if there is one.

    Raises UntrustedError for authorities or a certificate that cannot be read.
    """
    try:
        authorities = credentials.ca.decode("ascii") if credentials.ca else None
        client_context = ssl.create_default_context(cadata=authorities)
        # Verify as Go's clients do, whatever the defaults of this Python are. Since 3.13 Python
        # refuses authorities without key usage (STRICT), which many clusters have had for years
        # and kubectl accepts; it also accepts each given certificate as a trust anchor
        # (PARTIAL_CHAIN), as Go always did. Names, times, signatures and whether a certificate
        # is an authority at all are verified in any case.
        client_context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        client_context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if credentials.certificate:
            with _certificate_file(credentials.certificate + b"\n" + credentials.key) as pair_path:
                client_context.load_cert_chain(pair_path)
    except (ssl.SSLError, ValueError) as error:
        raise UntrustedError(
            f"certificates that cannot be read: {type(error).__name__}", reason="BadCertificate"
        ) from None
    return client_context


@contextlib.contextmanager
def _certificate_file(data: bytes) -> Iterator[str]:
    """Give bytes a path, since ``ssl`` reads keys from files only; they stay in memory.

    Systems without files in memory get a temporary file that only we can read.
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
    """Translate errors of the system and of TLS into APIError's family."""
    # The order matters: all of these are subclasses of OSError.
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


_REDIRECTS = range(300, 400)


class Transport(httpx2.BaseTransport):
    """Sends the library's requests; raises APIError's family and nothing else."""

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
        """Send one request; the caller reads the body of the answer."""
        # A compressed answer could expand far beyond the bytes that the meter counts.
        request.headers["Accept-Encoding"] = "identity"
        url = request.url
        pool_request = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.read(),
            extensions={"sni_hostname": self._name} if self._name else {},
        )
        with _as_api_errors():
            pool_answer = self._pool.handle_request(pool_request)
        response = httpx2.Response(
            pool_answer.status,
            headers=pool_answer.headers,
            stream=_ResponseBody(pool_answer.iter_stream(), pool_answer),
        )
        try:
            _refuse_redirect_and_coding(response)
        except GarbageError:
            # An open response would keep its connection out of the pool for good.
            response.close()
            raise
        return response

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _ResponseBody(httpx2.SyncByteStream):
    """The bytes of an answer as they arrive."""

    def __init__(self, pieces: Iterable[bytes], answer: httpcore2.Response) -> None:
        self._pieces = pieces
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_api_errors():
            yield from self._pieces

    def close(self) -> None:
        with _as_api_errors():
            self._answer.close()


def _refuse_redirect_and_coding(response: httpx2.Response) -> None:
    """Refuse redirects, which lead elsewhere, and compression, whose output nobody counts."""
    if response.status_code in _REDIRECTS:
        raise GarbageError("a redirect", code=response.status_code, reason="Redirect")
    content_coding = response.headers.get("Content-Encoding", "identity")
    if content_coding != "identity":
        raise GarbageError(f"a compressed answer ({content_coding[:20]!r})", reason="Compressed")


@contextlib.contextmanager
def _as_api_errors() -> Iterator[None]:
    """Translate the library's errors into APIError's family; our streams raise it already."""
    try:
        yield
    except httpcore2.RemoteProtocolError as error:
        protocol_error = str(error)
        # The library has one class for a hang-up and for bytes that are no HTTP.
        if "disconnect" in protocol_error or "closed connection" in protocol_error:
            raise UnreachableError("the server hung up", reason="Disconnected") from None
        raise GarbageError(f"an answer that is no HTTP: {protocol_error[:200]}") from None
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        raise UnreachableError(str(error)[:200] or type(error).__name__) from None
