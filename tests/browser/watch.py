"""Watches each browser context for errors that no page may cause, from its first page on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import (
        BrowserContext,
        ConsoleMessage,
        Dialog,
        Request,
        Response,
        WebError,
    )

HOST: Final = "127.0.0.1"
BLOCKED: Final = "BLOCKED BY THE POLICY"
# Chromium reports only some violations; this listener reports all.
LISTEN: Final = f"""
document.addEventListener("securitypolicyviolation", (event) =>
  console.error("{BLOCKED}", event.violatedDirective, event.blockedURI, event.sample));
"""
_OURS: Final = ("data:", "blob:", "about:")
_STATUS: Final = "Failed to load resource: the server responded with a status of"
_LEFT: Final = ("htmx:afterRequest", "htmx:sendAbort")
"""Messages of htmx when a page is left or reloaded during a request."""


@dataclass
class Watch:
    """Listens to a context; ``troubles`` are texts, and none is expected."""

    troubles: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        """Listen to all further events of a context."""
        context.add_init_script(LISTEN)
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("request", self._request)
        context.on("response", self._response)
        context.on("dialog", self._dialog)

    def check(self) -> None:
        """Fail on errors since the last check."""
        troubles, self.troubles = self.troubles, []
        assert not troubles, "\n".join(troubles)

    def _console(self, message: ConsoleMessage) -> None:
        # ``_response`` judges statuses: a page with status 404 is correct.
        if message.type == "error" and not message.text.startswith((_STATUS, *_LEFT)):
            self.troubles.append(f"console of {message.page and message.page.url}: {message.text}")

    def _error(self, error: WebError) -> None:
        self.troubles.append(f"script: {error.error}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith(_OURS) and urlsplit(request.url).hostname != HOST:
            self.troubles.append(f"request to another host: {request.url}")

    def _response(self, response: Response) -> None:
        is_page = response.request.resource_type in {"document", "fetch", "xhr"}
        if response.status >= (500 if is_page else 400):
            self.troubles.append(f"{response.status} at {response.url}")

    def _dialog(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()
