"""The HTTP transport of the Kubernetes client: no proxy, no redirect, no compression."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import httpcore2
import httpx2

from sync.client.network import Network, tls_context
from sync.errors import GarbageError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sync.addresses import Network as Addresses
    from sync.client.network import Meter
    from sync.values import Credentials

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
