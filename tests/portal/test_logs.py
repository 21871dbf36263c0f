from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from portal.logs import JSONFormatter, RequestFilter

if TYPE_CHECKING:
    from django.test import Client

KEY = "7c1d9a0e4f"


def record(message: str, *args: object) -> logging.LogRecord:
    made = logging.LogRecord("name", logging.WARNING, "", 1, message, args, None)
    RequestFilter().filter(made)
    return made


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"Unauthorized: /admission/prod/{KEY}/mutate", "Unauthorized: /admission/prod/…/mutate"),
        (f"/admission/prod/{KEY}/validate?timeout=5s", "/admission/prod/…/validate?timeout=5s"),
        ("/admission/prod/mutate", "/admission/prod/mutate"),
    ],
)
def test_credential_in_an_address_stays_out_of_the_log(message: str, expected: str) -> None:
    assert record("%s", message).getMessage() == expected


def test_refused_call_leaves_no_credential_behind(
    client: Client, caplog: pytest.LogCaptureFixture, db: None
) -> None:
    caplog.handler.addFilter(RequestFilter())
    client.post(f"/admission/prod/{KEY}/mutate", data="{}", content_type="application/json")
    assert KEY not in caplog.text


def test_json_line_has_the_request_and_the_exception() -> None:
    made = record("lost %s", "it")
    error = ValueError(f"/admission/prod/{KEY}/mutate")
    made.exc_info = (ValueError, error, None)
    line = json.loads(JSONFormatter().format(made))
    assert (line["message"], line["request_id"], line["level"]) == ("lost it", "-", "WARNING")
    assert "ValueError" in line["exception"]
    assert KEY not in line["exception"]


@pytest.mark.parametrize(
    ("given", "is_kept"), [("abc-1.Z_9", True), ("a b", False), ("x" * 65, False), ("", False)]
)
def test_request_id_is_kept_when_well_formed(client: Client, given: str, *, is_kept: bool) -> None:
    answer = client.get("/livez", headers={"x-request-id": given})
    assert (answer["X-Request-Id"] == given) is is_kept
    assert answer["X-Request-Id"]
