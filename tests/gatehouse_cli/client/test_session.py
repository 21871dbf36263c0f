"""A session: what is sent, pages, and every way in which there is no answer."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from gatehouse_cli.client.problems import (
    ClientError,
    NoPortalError,
    ProblemError,
    SignInError,
)
from gatehouse_cli.client.session import PortalSession, checked_url
from gatehouse_cli.client.shape import ApiOperation, Page
from portal.dev import self_signed
from tests.gatehouse_cli.fake_portal import FakePortal, served

if TYPE_CHECKING:
    from pathlib import Path

LIST: ApiOperation[Page[int]] = ApiOperation(
    "GET", "/things/", query="limit offset colour", repeated="kind"
)
READ: ApiOperation[Any] = ApiOperation("GET", "/things/")
WRITE: ApiOperation[Any] = ApiOperation("POST", "/things/", query="dryRun", headers="If-Match")


def session(portal: FakePortal) -> PortalSession:
    return PortalSession(portal.url, "t0ken")


def test_token_parameters_and_body_are_sent(portal: FakePortal) -> None:
    portal.answer("/things/", {"id": 1}, method="POST", status=201)
    with session(portal) as opened:
        sent = opened.call(
            WRITE, query={"dryRun": "All"}, headers={"If-Match": '"3"'}, body={"a": "ü"}
        )
    asked = portal.asked[0]
    assert (sent, asked.query, asked.body) == ({"id": 1}, {"dryRun": "All"}, {"a": "ü"})
    assert (asked.headers["Authorization"], asked.headers["If-Match"]) == ("Token t0ken", '"3"')


def test_answer_without_content_is_none(portal: FakePortal) -> None:
    portal.answer("/things/", method="POST", status=204)
    with session(portal) as opened:
        assert opened.call(WRITE) is None


def test_text_is_answered_as_it_is(portal: FakePortal) -> None:
    portal.answer("/things/", "ü: 1\n".encode(), media_type="application/yaml")
    with session(portal) as opened:
        assert opened.call(READ) == "ü: 1\n"


def test_all_pages_are_read_even_if_the_portal_names_another_host(portal: FakePortal) -> None:
    other = "http://internal.invalid/things/?limit=500&offset=2&colour=red"
    portal.answer("/things/", {"next": other, "results": [1, 2]})
    portal.answer("/things/", {"next": None, "results": [3]})
    with session(portal) as opened:
        assert list(opened.items(LIST, {"colour": "red"})) == [1, 2, 3]
    assert [asked.query for asked in portal.asked] == [
        {"colour": "red", "limit": "500"},
        {"colour": "red", "limit": "500", "offset": "2"},
    ]


def test_only_as_many_as_wanted_are_read(portal: FakePortal) -> None:
    portal.answer("/things/", {"next": f"{portal.url}/things/?offset=2", "results": [1, 2]})
    with session(portal) as opened:
        assert list(opened.items(LIST, {}, most=2)) == [1, 2]
    assert [asked.query for asked in portal.asked] == [{"limit": "2"}]


def test_repeated_parameters_are_sent_each(portal: FakePortal) -> None:
    portal.page("/things/")
    with session(portal) as opened:
        opened.call(LIST, query={"kind": ["a", "b"]})
    assert portal.asked[0].query == {"kind": "b"}  # the last of both


def test_problem_names_its_fields(portal: FakePortal) -> None:
    errors = {
        "spec.hardd": [{"code": "unknown_field", "message": "did you mean hard?"}],
        "documents": [{"code": "syntax", "message": "no YAML", "line": 3, "column": 7}],
    }
    portal.refuse("/things/", 422, title="The body does not fit", detail="x", errors=errors)
    with session(portal) as opened, pytest.raises(ProblemError) as caught:
        opened.call(READ)
    assert str(caught.value).splitlines() == [
        "The body does not fit (422)",
        "  spec.hardd: did you mean hard?",
        "  3:7: documents: no YAML",
    ]
    assert (caught.value.status, caught.value.type) == (422, "x")


def test_problem_without_fields_is_its_detail(portal: FakePortal) -> None:
    portal.refuse("/things/", 403, detail="you may not")
    with session(portal) as opened, pytest.raises(ProblemError, match=r"^you may not \(403\)$"):
        opened.call(READ)


def test_refused_token_leads_to_login(portal: FakePortal) -> None:
    portal.refuse("/things/", 401, detail="Invalid token.")
    with session(portal) as opened, pytest.raises(SignInError) as caught:
        opened.call(READ)
    assert str(caught.value) == "Invalid token. (401); run: gatehouse login URL"


@pytest.mark.parametrize(
    ("status", "media_type", "content", "message"),
    [
        (502, "text/html", b"<h1>", "answered 502 and no problem details; is it a Gatehouse"),
        (200, "application/json", b"{", "no JSON"),
        (302, "text/html", b"", "redirects to /sign-in; use the portal's own address"),
    ],
)
def test_an_answer_of_something_else_is_said_to_be_one(
    portal: FakePortal, status: int, media_type: str, content: bytes, message: str
) -> None:
    portal.answer("/things/", content, status=status, media_type=media_type, Location="/sign-in")
    with session(portal) as opened, pytest.raises(NoPortalError, match=message):
        opened.call(READ)


def test_nobody_listens() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with PortalSession(url, "x") as opened, pytest.raises(NoPortalError) as caught:
            opened.call(READ)
    assert str(caught.value) == f"{url} cannot be reached: Connection refused"


@pytest.mark.parametrize(
    "url",
    ["", "gatehouse.example.com", "ftp://a", "https://", "https://u:p@a", "https://a?b", "a b"],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ClientError, match="address"):
        checked_url(url)


def test_address_keeps_its_path_and_loses_its_last_slash() -> None:
    assert checked_url("https://a.example:8443/gate/") == "https://a.example:8443/gate"


def test_path_of_the_address_is_kept_in_requests(portal: FakePortal) -> None:
    portal.answer("/gate/things/", {"id": 1})
    with PortalSession(f"{portal.url}/gate/", "t") as opened:
        assert opened.call(READ) == {"id": 1}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, which no machine trusts."""
    folder = tmp_path_factory.mktemp("tls")
    if self_signed.main(["--folder", str(folder)]):
        pytest.skip("there is no openssl")
    return folder / "tls.crt"


def test_only_a_trusted_certificate_is_accepted(certificate: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_name("tls.key"))
    with served(context) as portal:
        portal.answer("/things/", {"id": 1})
        with PortalSession(portal.url, "t") as opened, pytest.raises(NoPortalError, match="verify"):
            opened.call(READ)
        assert portal.asked == []
        trusting = PortalSession(portal.url, "t", certificate_authority=str(certificate))
        with trusting as opened:
            assert opened.call(READ) == {"id": 1}


def test_file_without_a_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(ClientError, match=r"ca\.pem: "):
        PortalSession("https://a.example", "t", certificate_authority=str(tmp_path / "ca.pem"))
