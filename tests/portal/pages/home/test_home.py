"""Home: what it counts, whom it shows, and that it costs the same for many clusters."""

from __future__ import annotations

import html
import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from admission.models import AuditEvent, Tally, decision_id, partitions
from policies.models import QuotaUsagePoint
from portal.pages.home import figures
from portal.pages.shell.quota_lines import decisions_of
from tests import factories, people
from tests.admission.requested import requested
from tests.portal.pages.quotas.test_board import quota, refused

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


def answers(number: int, back: timedelta = timedelta(0), **fields: Any) -> None:
    partitions.ensure(datetime.now(UTC) - back)
    milliseconds = int((datetime.now(UTC) - back).timestamp() * 1000) - number - 1
    made = {"cluster": "prod", "verdict": "allowed", "code": 200, "duration_us": 1000, **fields}
    for each in range(number):
        AuditEvent(id=decision_id.encode(milliseconds + each, each), **made).save()


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


def shown(reader: Client, query: str = "") -> Any:
    response = reader.get(f"/{query}")
    assert response.status_code == 200
    return response.context


def figures_of(context: Any) -> dict[str, str]:
    return {tile.label: tile.figure for tile in context["tiles"]}


def test_strangers_are_sent_to_sign_in(client: Client) -> None:
    assert client.get("/").status_code == 302


def test_each_answer_is_in_one_step_tallied_or_not(reader: Client) -> None:
    for hours in range(1, 23):
        answers(2, timedelta(hours=hours), verdict="denied")
    Tally.objects.bring_up_to_date(now=datetime.now(UTC), until=time.monotonic() + 60)
    answers(3, verdict="mutated")
    for query, steps in (("", 24), ("?window=week", 7), ("?window=month", 30)):
        counts = shown(reader, query)["counts"]
        assert (counts.number("denied"), counts.number("mutated")) == (44, 3)
        assert len(counts.steps) == steps
        assert counts.by_cluster["prod"].total() == 47


def test_without_a_tally_the_last_hour_is_counted(reader: Client) -> None:
    answers(5)
    assert figures_of(shown(reader))["Decisions"] == "5"


def test_a_window_is_compared_with_the_one_before(reader: Client) -> None:
    assert shown(reader)["counts"].change is None
    answers(4, timedelta(hours=30))
    Tally.objects.bring_up_to_date(now=datetime.now(UTC), until=time.monotonic() + 60)
    answers(5)
    assert shown(reader)["counts"].change == 25


def test_the_chosen_cluster_filters_every_figure(reader: Client) -> None:
    answers(3, verdict="denied", reasons=" MaxConstraint ", name="a")
    answers(2, verdict="denied", reasons=" MinConstraint ", name="b", cluster="other")
    quota({"pods": "1"}, {"pods": "1"})
    quota({"pods": "1"}, {"pods": "1"}, in_cluster="other")
    factories.limit_range({"type": "Container", "max": {"cpu": "1"}})
    for query, denied, quotas, causes in (
        ("", "5", "2 of 2", ["a", "b"]),
        ("?cluster=prod", "3", "1 of 1", ["a"]),
        ("?cluster=other", "2", "1 of 1", ["b"]),
    ):
        context = shown(reader, query)
        tiles = figures_of(context)
        assert (tiles["Denied"], tiles["Quotas"]) == (denied, quotas)
        assert [cause.owner for cause in context["causes"].causes] == causes
        assert sum(bar.total for bar in context["chart"].bars) == int(denied)
        names = {line.status.cluster.name for line in context["clusters"]}
        assert len(names) == (1 if query else 2)
        assert {change.revision.cluster for change in context["changes"]} == names
        assert (
            all("other" not in item.place for item in context["items"]) or query != "?cluster=prod"
        )


def test_denials_are_drawn_by_their_first_reason(reader: Client) -> None:
    answers(2, verdict="denied", reasons=" ExceededQuota MinConstraint ")
    answers(1, timedelta(minutes=1), verdict="denied", reasons=" MustSpecify ")
    answers(1, timedelta(minutes=2), verdict="denied", reasons=" UnreadableObject ")
    answers(1, timedelta(minutes=3))
    chart = shown(reader, "?window=week")["chart"]
    parts = [(part.group, part.number) for part in chart.bars[-1].parts]
    parts += [(part.group, part.number) for part in chart.bars[-2].parts]
    assert sorted(parts) == [("missing values", 1), ("other", 1), ("quota", 2)]
    assert list(chart.groups) == ["quota", "missing values", "other"]


def test_causes_are_owners_with_the_words_of_the_newest(reader: Client) -> None:
    for number in (1, 2, 3):
        refused(number, "pods", "1", name=f"api-5d9f8c7b6d-x2x{number + 4}z")
    refused(200, "pods", "1", name="db-0")
    first, second = shown(reader)["causes"].causes
    assert (first.owner, first.number, first.trend) == ("api", 3, "new")
    assert first.words.startswith("rq: ")
    assert (second.owner, second.number, second.trend) == ("db", 1, "once")
    link: Any = reader.get("/decisions/", first.query)
    assert link.status_code == 200


def test_causes_believe_what_objects_say_of_their_owner(reader: Client) -> None:
    owner = {"kind": "ReplicaSet", "name": "api-v1-aaaaa", "controller": True}
    metadata = {"ownerReferences": [owner], "labels": {"pod-template-hash": "aaaaa"}}
    refused(1, "pods", "1", name="x-1", **requested({"object": {"metadata": metadata}}))
    (cause,) = shown(reader)["causes"].causes
    assert (cause.owner, cause.kind) == ("api-v1", "Deployment")


def test_response_times_are_those_of_the_newest_answers() -> None:
    for number in range(100):
        answers(1, timedelta(seconds=number), duration_us=1000 * (number + 1))
    times = figures.response_times(decisions_of(people.person()))
    assert (times.median, times.p99, times.number) == (50, 99, 100)
    assert times.newest["prod"] > datetime.now(UTC) - timedelta(seconds=10)


def test_needy_quotas_are_counted_day_by_day(reader: Client) -> None:
    made = quota({"pods": "10"}, {"pods": "9"})
    quota({"pods": "10"}, {"pods": "1"}, in_="idle")
    now = datetime.now(UTC)
    QuotaUsagePoint.objects.bulk_create(
        QuotaUsagePoint(
            cluster=made.owner,
            quota_uid=made.uid,
            taken=now - timedelta(days=day, minutes=5),
            used={"pods": used},
        )
        for day, used in ((3, "2"), (2, "7"), (1, "8"))
    )
    (tile,) = [tile for tile in shown(reader)["tiles"] if tile.label == "Quotas"]
    assert tile.figure == "1 of 2"
    heights = [float(point.split(",")[1]) for point in tile.line.split()]
    assert [height < max(heights) for height in heights] == [False, False, True, True]


@pytest.mark.parametrize("query", ["", "?cluster=prod&window=week"])
def test_every_link_of_home_opens(reader: Client, query: str) -> None:
    quota({"pods": "1"}, {"pods": "1"})
    for number in (1, 2):
        refused(number, "pods", "1", name=f"api-{number}")
    content = reader.get(f"/{query}").content.decode()
    links = set(re.findall(r'href="([^"#]+)"', content.partition("<main")[2]))
    assert any("since=" in link for link in links)
    for link in map(html.unescape, links):
        if not link.startswith("/static/"):
            address = f"/{link}" if link.startswith("?") else link
            assert reader.get(address).status_code == 200, link


def test_a_reader_of_one_namespace_sees_its_figures_alone(client: Client) -> None:
    client.force_login(people.person("bob", cluster="prod", namespace="team"))
    answers(2, verdict="denied", namespace="team", name="a")
    answers(3, timedelta(minutes=1), verdict="denied", namespace="other", name="b")
    quota({"pods": "1"})
    quota({"pods": "1"}, in_="other")
    context = shown(client)
    tiles = figures_of(context)
    assert (tiles["Denied"], tiles["Quotas"]) == ("2", "0 of 1")
    assert [cause.owner for cause in context["causes"].causes] == ["a"]
    assert context["clusters"] == []


def test_questions_do_not_grow_with_clusters_and_answers(reader: Client) -> None:
    def cluster_with_answers(number: int) -> None:
        factories.cluster(f"c{number}")
        quota({"pods": "1"}, {"pods": "1"}, in_cluster=f"c{number}")
        answers(2, timedelta(minutes=number), cluster=f"c{number}", verdict="denied", name="a")

    def questions() -> int:
        # The fewest of three: policies and days are read anew when they change and now and then.
        counts = []
        for _ in range(3):
            with CaptureQueriesContext(connection) as asked:
                shown(reader)
            counts.append(len(asked))
        return min(counts)

    cluster_with_answers(0)
    cluster_with_answers(1)
    with_two = questions()
    for number in range(2, 12):
        cluster_with_answers(number)
    # On PostgreSQL a search asks once for each few days that have a partition: no fixed number.
    assert questions() <= with_two
