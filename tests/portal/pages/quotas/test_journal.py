"""The page of a quota's journal: entries and their decisions, filters, pages, differences."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from policies.ledger.release import release
from policies.models import LedgerEntry, QuotaUsage
from portal.pages.quotas import journal
from tests import builders, charges, factories, people

pytestmark = pytest.mark.django_db
ADDRESS = "/quotas/prod/team/rq/journal/"


@pytest.fixture(autouse=True)
def _two_pods(db: None) -> None:
    factories.resource_quota({"pods": "5"})
    for uid in ("u1", "u2"):
        pod = builders.pod(builders.container(), uid=uid, name=f"web-{uid}", namespace="team")
        assert charges.admit(builders.request(pod, namespace="team", uid=uid)) == [True]
    release("prod", resource="pods", uid="u1", user="eve")


@pytest.fixture
def reader() -> Client:
    client = Client()
    client.force_login(people.person())
    return client


def shown(client: Client, query: str = "") -> Any:
    response = client.get(f"{ADDRESS}{query}")
    assert response.status_code == 200
    return response


def lines(client: Client, query: str = "") -> list[tuple[str, str]]:
    rows = shown(client, query).context["rows"]
    return [(row.entry.action, row.entry.object_uid) for row in rows]


def test_newest_first_with_amounts_and_who_did_it(reader: Client) -> None:
    assert lines(reader) == [("release", "u1"), ("charge", "u2"), ("charge", "u1")]
    page = shown(reader).content.decode()
    assert "pods 1 → 0" in page
    assert "eve" in page


@pytest.mark.parametrize(
    ("query", "found"),
    [("?object=web-u1", 2), ("?object=u2", 1), ("?action=release", 1), ("?cause=watch", 0)],
)
def test_filters(reader: Client, query: str, found: int) -> None:
    assert len(lines(reader, query)) == found


def test_pages(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "ON_A_PAGE", 2)
    first = shown(reader).context
    assert len(first["rows"]) == 2
    assert lines(reader, f"?{first['older']}") == [("charge", "u1")]
    assert lines(reader, "?before=x") == lines(reader)


def test_a_difference_is_explained(reader: Client) -> None:
    assert shown(reader).context["differences"] == []
    QuotaUsage.objects.update(used={"pods": "2"})
    [difference] = shown(reader).context["differences"]
    assert (difference.used, difference.charged, difference.is_explained) == ("2", "1", True)
    assert [entry.action for entry in difference.entries] == ["release"]
    assert "lacks just these entries" in shown(reader).content.decode()


def test_an_entry_leads_to_its_decision(reader: Client) -> None:
    LedgerEntry.objects.create(
        cluster=factories.cluster(),
        quota_uid=QuotaUsage.objects.get().quota_uid,
        namespace="team",
        action="charge",
        cause="admission",
        reference="0123456789abcdef",
    )
    assert '"/decisions/0123456789abcdef"' in shown(reader).content.decode()


def test_who_may_not_see_it_finds_nothing(reader: Client) -> None:
    assert reader.get("/quotas/prod/team/other/journal/").status_code == 404
    elsewhere = Client()
    elsewhere.force_login(people.person("bob", namespace="other"))
    assert elsewhere.get(ADDRESS).status_code == 404
