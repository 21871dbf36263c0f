"""The pages as a person meets them, without a browser: who sees what, and what it says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client, override_settings

from admission.models import AuditEvent, Verdict, decision_id
from admission.record.narrative import sentence, summary
from tests import people

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>"
POLICY = {"kind": "LimitRange", "namespace": "ns", "name": "limits", "revision": 3}
BEGAN = int(datetime.now(UTC).timestamp() * 1000) - 1000
VIOLATION = {
    "reason": "MaxConstraint",
    "field": "spec.containers[0]",
    "message": "maximum cpu usage per Container is 1, but limit is 2",
    "policy": POLICY,
    "rule": 0,
    "numbers": {"enforced": "1", "limit": "2"},
}


@pytest.fixture
def event(db: None) -> Callable[..., AuditEvent]:
    """Put a decision on record, by default an allowed one."""

    def make(number: int = 0, **fields: Any) -> AuditEvent:
        made = AuditEvent(
            **{
                "id": decision_id.encode(BEGAN + number, number),
                "duration_us": 1234,
                "cluster": "demo",
                "phase": "validate",
                "request_uid": "uid",
                "operation": "CREATE",
                "kind": "Pod",
                "namespace": "ns",
                "name": f"p{number}",
                "user": "alice",
                "verdict": Verdict.ALLOWED,
                "code": 200,
                **fields,
            }
        )
        made.save()
        return made

    return make


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("address", ["/decisions/", "/decisions/0000000000000000", "/api/docs/"])
def test_strangers_are_sent_to_sign_in(client: Client, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 302
    assert response["Location"] == f"/accounts/login/?next={address}"


def test_signing_in_and_out(client: Client, django_user_model: type[User]) -> None:
    django_user_model.objects.create_user("ada", password="right-horse")
    assert "Sign in" in text(client, "/accounts/login/")
    wrong = client.post("/accounts/login/", {"username": "ada", "password": "wrong"})
    assert 'role="alert"' in wrong.content.decode()
    right = {"username": "ada", "password": "right-horse"}
    assert client.post("/accounts/login/", right)["Location"] == "/"
    assert "ada" in text(client, "/decisions/")
    assert client.post("/accounts/logout/")["Location"] == "/accounts/login/"
    assert client.get("/decisions/").status_code == 302


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example/", "javascript:alert(1)"]
)
def test_signing_in_stays_here(client: Client, django_user_model: type[User], target: str) -> None:
    django_user_model.objects.create_user("ada", password="right-horse")
    given = {"username": "ada", "password": "right-horse", "next": target}
    assert client.post("/accounts/login/", given)["Location"] == "/"


def test_an_empty_record_teaches(reader: Client) -> None:
    page = text(reader, "/decisions/")
    assert "No decision yet" in page
    assert "curl" in page


def test_a_filter_without_results_says_so(reader: Client, event: Callable[..., AuditEvent]) -> None:
    event()
    page = text(reader, "/decisions/?cluster=other")
    assert "No decision matches this filter" in page


def test_a_wrong_filter_shows_its_error(reader: Client, event: Callable[..., AuditEvent]) -> None:
    event()
    answer = reader.get("/decisions/?since=yesterday")
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Enter a valid date" in page
    assert "<details data-menu open>" in page


def test_pages_follow_each_other(reader: Client, event: Callable[..., AuditEvent]) -> None:
    for number in range(60):
        event(number)
    first = text(reader, "/decisions/?cluster=demo")
    assert "p59" in first
    assert "p9<" not in first
    older = re.search(r'href="\?([^"]+)" rel="next"', first)
    assert older
    second = text(reader, f"/decisions/?{older.group(1).replace('&amp;', '&')}")
    assert "p9<" in second
    newer = re.search(r'href="\?([^"]+)" rel="prev"', second)
    assert newer
    assert "p59" in text(reader, f"/decisions/?{newer.group(1).replace('&amp;', '&')}")


def test_an_invented_cursor_is_ignored(reader: Client, event: Callable[..., AuditEvent]) -> None:
    event(1)
    assert "p1" in text(reader, "/decisions/?before=%27--&after=%00")


def test_the_detail_tells_everything(reader: Client, event: Callable[..., AuditEvent]) -> None:
    made = event(
        verdict=Verdict.DENIED,
        code=403,
        reason="Forbidden",
        message="pods is forbidden",
        violations=[VIOLATION],
        observed=[{**VIOLATION, "policy": None, "rule": None}],
        trace=[
            {
                "name": "LimitRangeCheck",
                "outcome": "violated",
                "policy": POLICY,
                "rule": 0,
                "detail": "asked",
                "numbers": {"ratio": "5.000000"},
            }
        ],
        warnings=["mind the gap"],
        charges=[{"quota": POLICY, "delta": {"pods": "1"}, "amounts": {"pods": "1"}}],
        patch=[{"op": "add", "path": "/a", "value": {"b": 1}}, {"op": "remove", "path": "/c"}],
        policies=[POLICY],
        groups=["dev", "ops"],
        object_uid="object-uid",
        request={"object": {"kind": "Pod"}, "oldObject": {"kind": "Old"}},
    )
    page = "".join(text(reader, f"/decisions/{made.id}?tab={tab}") for tab in ("trace", "raw"))
    for told in (
        "was refused: maximum cpu usage per Container is 1, but limit is 2 (LimitRange limits)",
        "5.000000",
        "mind the gap",
        "Charges if admitted",
        "/a",
        "dev, ops",
        "object-uid",
        "The object before",
        "1.2 ms",
        "Violations of policies that only warn or audit",
    ):
        assert told in page


def test_what_callers_wrote_is_only_text(reader: Client, event: Callable[..., AuditEvent]) -> None:
    made = event(
        name=HOSTILE,
        user=HOSTILE,
        namespace=HOSTILE,
        verdict=Verdict.DENIED,
        message=HOSTILE,
        warnings=[HOSTILE],
        request={"object": {HOSTILE: HOSTILE}},
    )
    for address in ("/decisions/", f"/decisions/{made.id}", f"/decisions/?name={HOSTILE}"):
        page = text(reader, address)
        assert HOSTILE not in page
        assert "&lt;script&gt;" in page


@pytest.mark.parametrize("address", ["/decisions/", "/decisions/{id}", "/accounts/login/"])
def test_pages_hold_under_a_strict_policy(
    client: Client, reader: Client, event: Callable[..., AuditEvent], address: str
) -> None:
    made = event()
    visitor = Client() if "login" in address else reader
    response = visitor.get(address.format(id=made.id))
    page = response.content.decode()
    assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son[a-z]+=", page)
    policy = response["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "no-store" in response["Cache-Control"]


def test_each_field_has_a_label_and_each_page_one_heading(
    reader: Client, event: Callable[..., AuditEvent]
) -> None:
    event()
    page = text(reader, "/decisions/")
    named = set(re.findall(r'<label[^>]* for="([^"]+)"', page))
    fields = set(re.findall(r'<(?:input|select)[^>]* id="([^"]+)"', page))
    assert fields
    assert fields <= named
    assert page.count("<h1") == 1
    assert 'lang="en"' in page
    assert page.index('class="skip"') < page.index('<a class="brand"')


def test_an_unknown_address_is_explained(reader: Client) -> None:
    response = reader.get("/decisions/aaaaaaaaaaaaaaaa")
    assert response.status_code == 404
    assert "Page not found" in response.content.decode()


@override_settings(ROOT_URLCONF="tests.portal.pages.failing_urls")
def test_a_failure_is_owned_up_to(reader: Client) -> None:
    reader.raise_request_exception = False
    response = reader.get("/fails/")
    assert response.status_code == 500
    page = response.content.decode()
    assert "Internal error" in page
    assert "a secret of ours" not in page


@override_settings(ROOT_URLCONF="tests.portal.pages.failing_urls")
def test_a_refusal_is_explained(reader: Client) -> None:
    response = reader.get("/forbidden/")
    assert response.status_code == 403
    assert "Not allowed" in response.content.decode()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "was allowed as it is."),
        ({"patch": [{"op": "add"}]}, "was allowed, after 1 change to the object."),
        ({"charges": [{"quota": POLICY}]}, "was allowed, charged to limits."),
        (
            {"charges": [{"quota": POLICY}], "dry_run": True},
            "was allowed as it is (a dry run: nothing was charged).",
        ),
        (
            {"verdict": Verdict.DENIED, "violations": [VIOLATION] * 3},
            f"was refused: {VIOLATION['message']} (LimitRange limits), and 2 more reasons.",
        ),
        ({"verdict": Verdict.DENIED, "message": "too large"}, "was refused: too large."),
        ({"operation": ""}, "sent a review that could not be read and was allowed as it is."),
        ({"sub_resource": "resize"}, "Pod (resize) p0 in namespace ns of cluster demo and was"),
    ],
)
def test_a_decision_in_one_sentence(
    event: Callable[..., AuditEvent], fields: dict[str, Any], told: str
) -> None:
    assert told in sentence(event(**fields))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, ""),
        ({"warnings": ["a", "b"]}, "2 warnings"),
        ({"patch": [{"op": "add"}]}, "1 change to the object"),
        ({"verdict": Verdict.DENIED, "reason": "Forbidden"}, "Forbidden"),
    ],
)
def test_a_decision_in_a_few_words(
    event: Callable[..., AuditEvent], fields: dict[str, Any], told: str
) -> None:
    assert summary(event(**fields)) == told
