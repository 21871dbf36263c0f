"""PinnedNetwork and ``as_api_errors``: an asynchronous connection as ``network`` makes others."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpcore2

from sync.addresses import resolve
from sync.errors import UnreachableError, UntrustedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from sync.addresses import Network as Addresses


class PinnedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses that the server's name had first, if they are allowed."""

    def __init__(self, allowed: Sequence[Addresses]) -> None:
        self._allowed = allowed
        self._pinned: tuple[str, ...] = ()
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that answers; raises APIError's family."""
        # Resolved once: a second answer of DNS could lead past the check of addresses (rebinding).
        if not self._pinned:
            self._pinned = await asyncio.to_thread(resolve, host, port, self._allowed)
        for address in self._pinned[:-1]:
            try:
                return await self._backend.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._backend.connect_tcp(
            self._pinned[-1], port, timeout, local_address, socket_options
        )

    async def sleep(self, seconds: float) -> None:
        """Wait, for the library."""
        await asyncio.sleep(seconds)


@asynccontextmanager
async def as_api_errors() -> AsyncIterator[None]:
    """Translate the library's errors into APIError's family."""
    try:
        yield
    except httpcore2.ConnectError as error:
        if (cause := _certificate_error(error)) is not None:
            raise UntrustedError(f"x509: {cause.verify_message}", reason="Untrusted") from None
        raise UnreachableError(_words(error), reason="Disconnected") from None
    except (httpcore2.TimeoutException, TimeoutError) as error:
        raise UnreachableError("no answer in time", reason="Timeout") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        raise UnreachableError(_words(error), reason="Disconnected") from None


def _certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _words(error: BaseException) -> str:
    return str(error)[:200] or type(error).__name__
