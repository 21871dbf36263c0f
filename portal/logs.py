"""How a log line looks: the request's id in it, a webhook's secret path segment not."""

from __future__ import annotations

import json
import logging
import re
from contextvars import ContextVar
from typing import Final

request_id: ContextVar[str] = ContextVar("request_id", default="-")
_KEY_IN_PATH: Final = re.compile(r"(/admission/[^/\s]+/)[^/\s]+(?=/(?:mutate|validate)\b)")


def redact(text: str) -> str:
    """The text with the credential in an address of the endpoint left out."""
    return _KEY_IN_PATH.sub(r"\1…", text)


class RequestFilter(logging.Filter):
    """Gives each record its request's id and takes the credentials out of its message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Amend the record; it is always kept."""
        record.request_id = request_id.get()
        message = record.getMessage()
        if "/admission/" in message:
            record.msg, record.args = redact(message), None
        return True


class JSONFormatter(logging.Formatter):
    """One JSON object a line, for collectors."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        line = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "request_id": getattr(record, "request_id", "-"),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)
