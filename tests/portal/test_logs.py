from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from portal.logs import (
    ACCESS,
    ACCESS_FORMAT,
    AccessLog,
    JSONFormatter,
    RequestFilter,
    TextFormatter,
)
from portal.serving.request_head import answer
from tests.portal.serving.asgi import answered, scope_of

if TYPE_CHECKING:
    from django.test import Client

KEY = "7c1d9a0e4f"
LONG = "Zk3v-9pQm_x7c1d9a0e4fZk3v-9pQm_x7c1d9a0e4f"


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


@pytest.mark.parametrize(
    "address",
    [
        "/admission/prod/{}",
        "/admission/prod/{}/",
        "/admission/prod/{}/mutat",
        "/admission/prod/{}/Mutate",
        "/admission/prod//{}/mutate",
        "/admission//prod/{}/mutate",
        "//admission/prod/{}/mutate",
        "/Admission/prod/{}/mutate",
        "/ADMISSION/PROD/{}/VALIDATE",
        "/admission/prod/{}/mutate/x",
        "/admission/prod/x/{}/mutate",
        "/admission/prod/mutate/{}",
        "/admission/prod/{}?timeout=5s",
        "/admissions/prod/{}/mutate",
        "https://gatehouse.example.com/admission/prod/{}/mutate",
        "/admission/{}",
        "/admission/{}/mutate",
        "/admission-{}/mutate",
    ],
)
def test_credential_in_a_mistyped_address_stays_out_of_the_log(address: str) -> None:
    assert LONG not in record("Not Found: %s", address.format(LONG)).getMessage()


def test_lines_of_code_stay_in_the_log() -> None:
    line = 'File "/srv/gatehouse/admission/writer/batch.py", line 7'
    assert record("%s", line).getMessage() == line


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


def test_times_are_in_utc_with_their_zone() -> None:
    made = record("x")
    made.created = 1700000000.25
    assert TextFormatter("%(asctime)s").format(made) == "2023-11-14T22:13:20.250Z"
    assert json.loads(JSONFormatter().format(made))["time"] == "2023-11-14T22:13:20.250Z"


def test_access_line_has_fields_and_no_credential() -> None:
    given = {
        "addr": "127.0.0.1",
        "method": "POST",
        "path": f"/admission/prod/{KEY}/mutate",
        "status": 200,
        "dt_ms": 1.5,
        "time": "",
    }
    made = logging.LogRecord(ACCESS, logging.INFO, "", 1, ACCESS_FORMAT, (given,), None)
    RequestFilter().filter(made)
    line = json.loads(JSONFormatter().format(made))
    assert (line["method"], line["status"], line["dt_ms"]) == ("POST", 200, 1.5)
    assert line["path"] == "/admission/prod/…/mutate"
    assert KEY not in json.dumps(line)


class Logged(AccessLog):
    """An access log that answers one call."""

    def begin(self, _loop: Any) -> None:
        return None

    async def close(self) -> None:
        return None


def access_line(caplog: pytest.LogCaptureFixture, application: Any, scope: Any) -> Any:
    """The one line of a call, as an object."""
    caplog.set_level(logging.INFO, ACCESS)
    with suppress(RuntimeError):
        answered(Logged(application), scope)
    (made,) = [record for record in caplog.records if record.name == ACCESS]
    RequestFilter().filter(made)
    assert "\n" not in TextFormatter("%(message)s").format(made)
    return json.loads(JSONFormatter().format(made))


async def refuse(_scope: Any, _receive: Any, send: Any) -> None:
    await answer(send, 404, [])


async def fail(*_: Any) -> None:
    raise RuntimeError


def test_access_line_is_written_once_for_a_call(caplog: pytest.LogCaptureFixture) -> None:
    line = access_line(caplog, refuse, scope_of(f"/admission/prod/{KEY}/mutate", headers={}))
    assert (line["addr"], line["method"], line["status"]) == ("127.0.0.1", "POST", 404)
    assert line["path"] == "/admission/prod/…/mutate"
    assert 0 <= line["dt_ms"] < 60_000


def test_access_line_is_written_for_a_call_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    line = access_line(caplog, fail, scope_of("/", headers={}, client=None))
    assert (line["addr"], line["path"], line["status"]) == ("-", "/", 0)


def test_access_line_stays_one_line(caplog: pytest.LogCaptureFixture) -> None:
    line = access_line(caplog, refuse, scope_of("/a\nforged \x1b[0m", headers={}))
    assert line["path"] == "/a%0Aforged%20%1B%5B0m"
