"""RequestHead of an ASGI call: method, path, first value of each header; ``answer`` in one piece.

Source: the ASGI specification, HTTP and WebSocket message format, version 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    Scope: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What is known of a call before its body is read."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    """Names in lower case; of a header that came twice, the first value."""
    is_plain: bool
    """Whether it has one host at most and no encoded slash."""

    @classmethod
    def of(cls, scope: Scope) -> RequestHead:
        """The head of an ASGI scope."""
        pairs = scope["headers"]
        headers = dict(reversed(pairs))
        # Nearly always all names differ; then there is one host at most.
        has_one_host = len(headers) == len(pairs) or [n for n, _ in pairs].count(b"host") <= 1
        # Whether an encoded slash separates parts of a path depends on who decodes it.
        is_plain = has_one_host and b"%2f" not in scope["raw_path"].lower()
        return cls(scope["method"], scope["path"], headers, is_plain)

    def __contains__(self, name: bytes) -> bool:
        """Whether a header came."""
        return name in self.headers

    def get(self, name: bytes) -> str:
        """The value of a header, empty without it."""
        return self.headers.get(name, b"").decode("latin-1")


async def answer(
    send: Send, status: int, headers: Iterable[tuple[str, str]], body: bytes = b""
) -> None:
    """Answer with one piece; the server adds its length to the headers."""
    await answer_raw(send, status, raw(headers), body)


def raw(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI has them."""
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]


async def answer_raw(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    """Do as ``answer``, with headers that are ``raw``."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
