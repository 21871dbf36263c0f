"""KindWatch: one kind watched for as long as the caller wants, asynchronously; list, then changes.

A cluster's watches share a pool of connections to addresses that are resolved once, as all requests
of this package do. HTTP/1.1: each open watch has a connection of its own.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

import httpcore2
import httpx2

from sync.client import answers
from sync.client.async_network import PinnedNetwork, as_api_errors
from sync.client.kinds import find_resource, kind_at
from sync.client.network import tls_context
from sync.errors import (
    APIError,
    ExpiredError,
    GarbageError,
    InvalidError,
    TooLargeError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence

    from sync.addresses import Network as Addresses
    from sync.client.kinds import ClientKind
    from sync.values import Credentials, Event

    Keep = Callable[[dict[str, Any]], dict[str, Any] | None]

LASTS: Final = (280, 580)
"""Seconds that a watch lasts; random, so that those of a cluster do not all end together."""
PAGE: Final = 500
_CONNECT: Final = 5.0
_ANSWER: Final = 60.0
_LINE: Final = 8 * 1024 * 1024
"""Bytes of one event: an API server stores no object above 1.5 MB."""
_PAGE_BYTES: Final = 64 * 1024 * 1024
_FIRST_ERROR: Final = 400
_REDIRECTS: Final = range(300, 400)
_INITIAL_END: Final = "k8s.io/initial-events-end"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_METADATA_EVENT: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
# A peer that vanished without a word is noticed within half a minute, however quiet the watch.
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
)


@dataclass(frozen=True, slots=True)
class Target:
    """What one watch is about: all objects of a kind, or those of one namespace.

    ``path`` is that of the list. Of every object only what ``keep`` returns is kept; without a
    function, all of it.
    """

    kind: ClientKind
    path: str
    keep: Keep | None = None

    @property
    def is_metadata_alone(self) -> bool:
        """Whether objects come without their contents."""
        return self.kind.kind == "PartialObjectMetadata"


@dataclass(frozen=True, slots=True)
class Listed:
    """The complete list with which a watch begins, and begins again after a gap."""

    items: tuple[dict[str, Any], ...]
    resource_version: str


@dataclass(slots=True)
class KindWatch:
    """One watch, and the version from which it continues; "" makes it begin with a list.

    ``is_open`` while the server sends its events; ``requested`` is ``time.monotonic()`` before
    the list that it began with was requested.
    """

    target: Target
    version: str = ""
    is_open: bool = False
    requested: float = 0.0

    @property
    def is_current(self) -> bool:
        """Whether a complete list was read, and its changes arrive."""
        return self.is_open and bool(self.version)


def _place_of(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def path_of(kind: ClientKind, namespace: str = "") -> str:
    """The path of a kind's list, in all namespaces or in one."""
    group_path = f"apis/{kind.api_version}" if kind.group else f"api/{kind.api_version}"
    place = f"namespaces/{quote(namespace, safe='')}/" if namespace else ""
    return f"{group_path}/{place}{kind.plural}"


@dataclass(slots=True)
class WatchClient:
    """The connections to one API server for its watches; every error is an APIError.

    Use it in one event loop, and close it there.
    """

    credentials: Credentials
    allowed: Sequence[Addresses]
    _pool: httpcore2.AsyncConnectionPool = field(init=False, repr=False)
    _knows_watch_lists: bool = True

    def __post_init__(self) -> None:
        """Make the pool; raises UntrustedError for certificates that cannot be read."""
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls_context(self.credentials),
            max_connections=200,
            max_keepalive_connections=4,
            keepalive_expiry=20,
            network_backend=PinnedNetwork(self.allowed),
            socket_options=_KEEPALIVE,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    async def changes(self, watch: KindWatch) -> AsyncGenerator[Listed | Event]:
        """Yield the complete list if there is no version yet, then each change and bookmark.

        ``watch.version`` moves with what was yielded: after an error, a call with the same watch
        continues without a gap. A version that is too old leads to another list. Ends when the
        server ends the watch.
        """
        try:
            if not watch.version:
                watch.requested = time.monotonic()
                if self._knows_watch_lists:
                    async for change in self._watch_with_list(watch):
                        yield change
                    return
                listed = await self.list(watch.target)
                watch.version = listed.resource_version
                yield listed
            async for event in self._events(watch, resourceVersion=watch.version):
                watch.version = event.resource_version
                yield event
        except ExpiredError:
            watch.version = ""

    async def list(self, target: Target) -> Listed:
        """Read the complete list, page by page, as it was at one version."""
        items: list[dict[str, Any]] = []
        version = token = ""
        while True:
            parameters = {"limit": str(PAGE), **({"continue": token} if token else {})}
            accept = _METADATA_LIST if target.is_metadata_alone else "application/json"
            async with self._answer(target.path, parameters, accept, _ANSWER) as pieces:
                page = answers.decode(await _whole(pieces))
            members, page_version, token = answers.checked_page(page, target.kind)
            items += _kept(target, members)
            version = version or page_version
            if not token:
                return Listed(tuple(items), version)

    async def find_kind(self, group: str, resource: str, *, contents: bool = False) -> ClientKind:
        """The kind of a namespaced resource; without ``contents`` that of its metadata alone.

        Raises NotFoundError for a resource that is not served.
        """
        paths_read: dict[str, dict[str, Any]] = {}
        while True:
            try:
                version, kind = find_resource(_Reader(paths_read), group, resource)
            except _UnreadPathError as unread:
                paths_read[unread.path] = await self._read(unread.path)
            else:
                return kind_at(group, version, resource, **({"kind": kind} if contents else {}))

    async def _read(self, path: str) -> dict[str, Any]:
        async with self._answer(path, {}, "application/json", _ANSWER) as pieces:
            return answers.decode(await _whole(pieces))

    async def _watch_with_list(self, watch: KindWatch) -> AsyncGenerator[Listed | Event]:
        """Let the server send the present objects as the first events of the watch, if it can."""
        present: dict[tuple[str, str], dict[str, Any]] | None = {}
        parameters = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        try:
            async for event in self._events(watch, **parameters):
                if present is None:
                    watch.version = event.resource_version
                    yield event
                elif event.type == "DELETED":
                    # A server whose cache is behind sends what happened since before the end.
                    present.pop(_place_of(event.object), None)
                elif event.type != "BOOKMARK":
                    present[_place_of(event.object)] = event.object
                elif _INITIAL_END in (event.object["metadata"].get("annotations") or {}):
                    listed = Listed(tuple(present.values()), event.resource_version)
                    watch.version, present = event.resource_version, None
                    yield listed
        except InvalidError:
            if present is None:
                raise
            # Servers before 1.32 refuse the parameter: from now on, list first.
            self._knows_watch_lists = False

    async def _events(self, watch: KindWatch, **parameters: str) -> AsyncIterator[Event]:
        target = watch.target
        lasts = random.randint(*LASTS)  # noqa: S311 - spreads load, no secret
        parameters |= {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(lasts),
        }
        accept = _METADATA_EVENT if target.is_metadata_alone else "application/json"
        async with self._answer(target.path, parameters, accept, lasts + _ANSWER) as pieces:
            watch.is_open = True
            try:
                async for line in _lines(pieces):
                    if (event := _kept_event(target, line)) is not None:
                        yield event
            finally:
                watch.is_open = False

    @asynccontextmanager
    async def _answer(
        self, path: str, parameters: Mapping[str, str], accept: str, seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request; yields the pieces of a good answer, raises the error in another one."""
        server = self.credentials.server.rstrip("/")
        headers: dict[bytes | str, bytes | str] = {
            "Host": urlsplit(server).netloc,
            "Accept": accept,
            "Accept-Encoding": "identity",
            "User-Agent": "gatehouse",
        }
        if self.credentials.token:
            headers["Authorization"] = f"Bearer {self.credentials.token}"
        timeout = {"connect": _CONNECT, "pool": _CONNECT, "write": _CONNECT, "read": seconds}
        extensions: dict[str, Any] = {"timeout": timeout}
        if self.credentials.tls_server_name:
            extensions["sni_hostname"] = self.credentials.tls_server_name
        url = f"{server}/{path}?{urlencode(parameters)}"
        async with (
            as_api_errors(),
            asyncio.timeout(seconds),
            self._pool.stream("GET", url, headers=headers, extensions=extensions) as response,
        ):
            if response.status in _REDIRECTS:
                raise GarbageError("a redirect", code=response.status, reason="Redirect")
            if response.status >= _FIRST_ERROR:
                raise await _error_in(response)
            yield response.aiter_stream()


class _UnreadPathError(Exception):
    """A path that has to be read before a resource can be found."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True, slots=True)
class _Reader:
    """Gives ``find_resource`` what was read, or says what is to be read next."""

    paths_read: Mapping[str, dict[str, Any]]

    def __call__(self, path: str) -> dict[str, Any]:
        if path not in self.paths_read:
            raise _UnreadPathError(path)
        return self.paths_read[path]


async def _whole(pieces: AsyncIterator[bytes]) -> bytes:
    """A whole answer, bounded."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > _PAGE_BYTES:
            raise TooLargeError(f"an answer of more than {_PAGE_BYTES} bytes")
    return bytes(body)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of an answer, each bounded, as they arrive."""
    unfinished = bytearray()
    async for piece in pieces:
        unfinished += piece
        if len(unfinished) > _LINE:
            raise TooLargeError(f"an event of more than {_LINE} bytes")
        if b"\n" in piece:
            *lines, unfinished = unfinished.split(b"\n")
            for line in lines:
                if line.strip():
                    yield bytes(line)
    if unfinished.strip():
        yield bytes(unfinished)


async def _error_in(response: httpcore2.Response) -> APIError:
    body = bytearray()
    async for piece in response.aiter_stream():
        body += piece
        if len(body) > _LINE:
            break
    readable = httpx2.Response(response.status, headers=response.headers)
    return answers.error_of(readable, bytes(body))


def _kept(target: Target, objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    keep = target.keep
    if keep is None:
        return list(objects)
    return [kept for one in objects if (kept := keep(one)) is not None]


def _kept_event(target: Target, line: bytes) -> Event | None:
    event = answers.checked_event(line, target.kind)
    if event.type == "BOOKMARK" or target.keep is None:
        return event
    kept = target.keep(event.object)
    return None if kept is None else type(event)(event.type, kept)
