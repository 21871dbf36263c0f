"""Logging: formatters of text and JSON lines, request ids, access fields; webhook keys redacted."""

from __future__ import annotations

import json
import logging
import re
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

request_id: ContextVar[str] = ContextVar("request_id", default="-")
# Anything after a cluster's name may be a credential, even in a misspelt address; so may any long
# word without spaces.
_BEHIND_CLUSTER: Final = re.compile(r"(?i)(admission\w*/+[^/\s?]+/+)([^\s?\"']+)")
_LONG_WORD: Final = re.compile(r"(?<![\w-])[\w-]{40,}(?![\w-])", re.ASCII)
_PHASES: Final = frozenset({"mutate", "validate", ""})
REVIEWS: Final = "/admission/"
"""How the address of each review begins."""
ACCESS: Final = "portal.access"
"""The logger of one line for each request, if a setting enables it."""
ACCESS_FORMAT: Final = "%(addr)s %(method)s %(path)s %(status)d %(dt_ms).1f ms"
_ACCESS_FIELDS: Final = ("addr", "method", "path", "status", "dt_ms")


def logging_config(level: str, form: str) -> dict[str, Any]:
    """The configuration of logging: one line each on standard error, with the request's id."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "request": {"()": "portal.logs.RequestFilter"},
            "no reviews": {"()": "portal.logs.ReviewFilter"},
        },
        "formatters": {
            "text": {
                "()": "portal.logs.TextFormatter",
                "fmt": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s",
            },
            "json": {"()": "portal.logs.JSONFormatter"},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "filters": ["request"],
                "formatter": form,
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level},
            "django.request": {"filters": ["no reviews"]},
            "httpx2": {"level": "WARNING"},  # below, it logs each request to a cluster
            ACCESS: {"level": "INFO"},
            # It names each broken request; a caller could fill the log with them.
            "uvicorn.error": {"level": "ERROR"},
        },
    }


def redact(text: str) -> str:
    """The text without the credentials in webhook addresses."""

    def without_key(cluster_match: re.Match[str]) -> str:
        address_words = cluster_match[2].split("/")
        shown = (part if part in _PHASES or part.endswith(".py") else "…" for part in address_words)
        return cluster_match[1] + "/".join(shown)

    return _LONG_WORD.sub("…", _BEHIND_CLUSTER.sub(without_key, text))


class RequestFilter(logging.Filter):
    """Adds the request's id to each record and removes credentials from its message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Amend the record; every record passes."""
        record.request_id = request_id.get()
        if record.name == ACCESS and isinstance(record.args, dict):
            access = {name: record.args[name] for name in _ACCESS_FIELDS}
            record.__dict__["access"] = {**access, "path": redact(str(access["path"]))}
        log_message = record.getMessage()
        if "admission" in log_message.lower():
            record.msg, record.args = redact(log_message), None
        return True


class ReviewFilter(logging.Filter):
    """Drops the line that Django writes about a review that was refused: it has one already."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record passes."""
        request = getattr(record, "request", None)
        if request is None or request.resolver_match is None:
            return True
        return not request.path_info.startswith(REVIEWS)


class TextFormatter(logging.Formatter):
    """One line of text, with its time in UTC as in RFC 3339."""

    def formatTime(  # noqa: N802 - as logging calls it
        self, record: logging.LogRecord, datefmt: str | None = None
    ) -> str:
        """The time of the record, to the millisecond."""
        del datefmt
        record_time = datetime.fromtimestamp(record.created, UTC)
        return record_time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JSONFormatter(TextFormatter):
    """One JSON object a line, for collectors."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        json_line = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "request_id": getattr(record, "request_id", "-"),
            "message": record.getMessage(),
            **getattr(record, "access", {}),
        }
        if record.exc_info:
            json_line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(json_line, ensure_ascii=False)


class AccessLog:
    """An ASGI application around another: writes a line for each answer."""

    def __init__(self, application: Callable[[Any, Any, Any], Awaitable[None]]) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one call."""
        start, status = time.monotonic(), 0

        async def send_on(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._application(scope, receive, send_on)
        finally:
            fields = {
                "addr": scope["client"][0] if scope["client"] else "-",
                "method": scope["method"],
                "path": quote(scope["path"]),  # decoded, it could break the line
                "status": status,
                "dt_ms": (time.monotonic() - start) * 1000,
            }
            logging.getLogger(ACCESS).info(ACCESS_FORMAT, fields)
