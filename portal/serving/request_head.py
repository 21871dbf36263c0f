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
    headers: dict[str, str]
    """Names in lower case; of a header that came twice, the first value."""
    is_plain: bool
    """Whether it has one host at most and no encoded slash."""

    @classmethod
    def of(cls, scope: Scope) -> RequestHead:
        """The head of an ASGI scope."""
        headers: dict[str, str] = {}
        hosts = 0
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
            hosts += name == b"host"
        # Whether an encoded slash separates parts of a path depends on who decodes it.
        is_plain = hosts <= 1 and b"%2f" not in scope["raw_path"].lower()
        return cls(scope["method"], scope["path"], headers, is_plain)

    def get(self, name: str) -> str:
        """The value of a header, empty without it."""
        return self.headers.get(name, "")


async def answer(
    send: Send, status: int, headers: Iterable[tuple[str, str]], body: bytes = b""
) -> None:
    """Answer with one piece; adds its length to the headers."""
    raw_headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    raw_headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": raw_headers})
    await send({"type": "http.response.body", "body": body})
