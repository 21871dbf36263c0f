"""Twenty hostile texts wherever a caller can write: the explorer shows them as text."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent, SavedView, Verdict, decision_id
from admission.record.redaction import escape
from admission.record.search import query
from tests import people
from tests.admission.requested import requested

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    '" onfocus="alert(1)" autofocus="',
    "</script><script>alert(1)</script>",
    "</tbody></table><h1>owned</h1>",
    "<!--",
    "]]>",
    "{{ 7*7 }}{% now 'Y' %}",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "=HYPERLINK(1)",
    "&verdict=allowed&q=x",
    "%3Cscript%3E",
    'a:b "c" \\ d',
    "\u202egnp\u2028.exe",
    "\x1b[31m\x00",
    "\U0001d54f\u0301" * 60,
    "A" * 250,
]  # fmt: skip


class Live(HTMLParser):
    """Notes what would run, or be loaded, or lead out of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag in {"img", "iframe", "object", "style"} or (tag == "script" and "src" not in names):
            self.found.append(tag)
        self.found += [name for name in names if name.startswith("on") or name == "style"]
        address = (names.get("href") or names.get("src") or "").strip().lower()
        if not address.startswith(("/", "?", "#")) and address:
            self.found.append(address)


def live(response: Any) -> list[str]:
    assert response.status_code == 200
    parser = Live()
    parser.feed(response.content.decode())
    assert response.content.count(b"<h1") in {0, 1}
    return parser.found


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


@pytest.fixture
def made(db: None) -> dict[str, str]:
    """A refusal for each text, in all that callers write; ids by text as it is on record."""
    began = int(datetime.now(UTC).timestamp() * 1000) - 1000
    columns = ("cluster", "namespace", "name", "user", "kind", "message")
    found = {}
    for number, text in enumerate(HOSTILE):
        kept = escape(text)
        metadata = {"generateName": kept, "labels": {kept: kept}}
        event = AuditEvent(
            id=decision_id.encode(began, number),
            duration_us=1,
            verdict=Verdict.DENIED,
            code=403,
            reasons=" MaxConstraint ",
            policy_names=" LimitRange/ns/lr ",
            **requested({"object": {"metadata": metadata, "spec": {"priorityClassName": kept}}}),
            violations=[{"message": kept, "policy": {"kind": kept, "name": kept}, "reason": kept}],
            operation=kept[:16],
            **dict.fromkeys(columns, kept),
        )
        event.save()
        found[kept] = event.pk
    return found


def test_hostile_texts_stay_texts(reader: Client, made: dict[str, str]) -> None:
    owner = people.nobody("owner")
    for text in made:
        SavedView.objects.create(owner=owner, name=text[:60], query="", is_shared=True)
    earliest = decision_id.lowest(datetime(2020, 1, 1, tzinfo=UTC))
    assert live(reader.get("/decisions/")) == []
    assert live(reader.get(f"/decisions/newer/?after={earliest}")) == []


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["user", "namespace", "priority"])
def test_hostile_texts_are_found_by_what_they_are(
    reader: Client, made: dict[str, str], name: str
) -> None:
    for text, pk in made.items():
        response = reader.get("/decisions/", {name: text})
        assert [row.event.pk for row in response.context["rows"]] == [pk]
        assert live(response) == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_the_bar_reads_what_it_wrote(text: str) -> None:
    fields = {"user": escape(text), "namespace": escape(text)}
    assert query.parse(query.render(fields)) == (fields, [])


def test_what_is_typed_stays_text(reader: Client) -> None:
    for text in HOSTILE:
        response = reader.get("/decisions/", {"q": f"{text} nonsense:{text}"}, follow=True)
        assert live(response) == []
