"""PortalSession: sends operations to one portal with a token, follows pages, or ClientError."""

from __future__ import annotations

import json
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast
from urllib.parse import parse_qsl, urlsplit

import httpx2

from gatehouse_cli import __version__
from gatehouse_cli.client.problems import ClientError, NoPortalError, problem_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gatehouse_cli.client.shape import ApiOperation, Page

Answer = TypeVar("Answer")
Item = TypeVar("Item")

TIMEOUT: Final = httpx2.Timeout(120.0, connect=10.0)
"""Seconds; a plan of a thousand objects takes some."""
LARGEST_PAGE: Final = 500
_JSON: Final = ("application/json", "application/problem+json")


class PortalSession:
    """One portal and one token; use it with ``with``."""

    def __init__(self, url: str, token: str, *, certificate_authority: str = "") -> None:
        """Raises ClientError for an address, token or file that cannot be used."""
        self.url = checked_url(url)
        if not (token.isascii() and token.isprintable()):
            raise ClientError("the token has characters that no token has")
        self._client = httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Token {token}", "User-Agent": f"gatehouse/{__version__}"},
            verify=_tls(certificate_authority),
            timeout=TIMEOUT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def call(
        self,
        operation: ApiOperation[Answer],
        *,
        names: Mapping[str, object] | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> Answer:
        """Send one operation; ``names`` are those in its path.

        Raises ClientError.
        """
        query, headers = query or {}, headers or {}
        operation.require_known(query, headers)
        request = self._client.build_request(
            operation.method,
            operation.address(names or {}),
            params={name: _texts(value) for name, value in query.items()},
            headers=dict(headers),
            json=body,
        )
        return cast("Answer", self._content(self._answer_to(request)))

    def items(
        self, operation: ApiOperation[Page[Item]], query: Mapping[str, Any], *, most: int = 0
    ) -> Iterator[Item]:
        """All entries of a list, or the first ``most``, page by page; raises ClientError."""
        size = min(most or LARGEST_PAGE, LARGEST_PAGE)
        page = self.call(operation, query={**query, "limit": size})
        given = 0
        while True:
            for item in page["results"]:
                if most and given == most:
                    return
                given += 1
                yield item
            if not page["next"] or (most and given == most):
                return
            # The query alone: behind a proxy the portal may know itself by another address.
            page = self.call(operation, query=dict(parse_qsl(urlsplit(page["next"]).query)))

    def _answer_to(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return self._client.send(request)
        except httpx2.TimeoutException as error:
            raise NoPortalError(f"{self.url} does not answer in time") from error
        except httpx2.HTTPError as error:
            raise NoPortalError(f"{self.url} cannot be reached: {_reason(error)}") from error

    def _content(self, response: httpx2.Response) -> Any:
        """The decoded body of a success; raises ClientError for everything else."""
        media_type = response.headers.get("Content-Type", "").partition(";")[0].strip()
        if response.is_redirect:
            where = response.headers.get("Location", "another address")
            raise NoPortalError(f"{self.url} redirects to {where}; use the portal's own address")
        if response.status_code == HTTPStatus.NO_CONTENT:
            return None
        content = _decoded(response.content) if media_type in _JSON else None
        if response.is_success:
            return response.text if content is None else content
        if not isinstance(content, dict):
            text = f"{self.url} answered {response.status_code} and no problem details"
            raise NoPortalError(f"{text}; is it a Gatehouse portal?")
        raise problem_of(response.status_code, content)


def checked_url(url: str) -> str:
    """The portal's address without a slash at the end.

    Raises ClientError unless it is ``http(s)://HOST[:PORT][/PATH]``.
    """
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        parsed = httpx2.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ClientError(f'"{url}" is no address of a portal; write https://HOST[:PORT]')
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise ClientError("a portal's address has no user, query or fragment")
    return str(parsed).rstrip("/")


def _tls(certificate_authority: str) -> ssl.SSLContext:
    """The machine's authorities, or the one in a file alone."""
    try:
        return ssl.create_default_context(cafile=certificate_authority or None)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or "no certificate in PEM"
        raise ClientError(f"{certificate_authority}: {reason}") from error


def _texts(value: Any) -> str | list[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else str(value)


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise NoPortalError("the answer is no JSON; is it a Gatehouse portal?") from error


def _reason(error: Exception) -> str:
    """The innermost cause in one line: outer ones say only that something failed."""
    cause: BaseException = error
    while cause.__cause__ or cause.__context__:
        cause = cast("BaseException", cause.__cause__ or cause.__context__)
    text = getattr(cause, "strerror", None) or str(cause) or str(error) or type(error).__name__
    return " ".join(str(text).split())
