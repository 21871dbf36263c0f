"""Pages of replays: asked for by form and editor, followed, read by group, cancelled, repeated."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.utils import timezone

from admission import tasks
from admission.models import Replay, partitions
from tests import factories, people
from tests.admission.replay.conftest import PROPOSED
from tests.admission.replay.conftest import cluster as cluster  # noqa: PLC0414 - a fixture
from tests.admission.replay.conftest import decided as decided  # noqa: PLC0414 - a fixture

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from policies.models import Cluster

pytestmark = pytest.mark.django_db
FORM = {"cluster": "demo", "days": "7", "namespaces": "", "query": ""}
TEXT = yaml.safe_dump(PROPOSED)


@pytest.fixture
def viewer(client: Client, cluster: Cluster) -> Client:
    user = people.nobody("ada")
    people.bind(user, "viewer", cluster="demo", namespace="ns")
    client.force_login(user)
    return client


def asked(client: Client, **changed: str) -> Any:
    return client.post("/replays/new/", {**FORM, "manifests": TEXT, **changed})


def carried_out(client: Client, **changed: str) -> Replay:
    answer = asked(client, **changed)
    assert answer.status_code == 302, answer.content.decode()
    replay = Replay.objects.get()
    assert answer["Location"] == f"/replays/{replay.uid}/"
    tasks.carry_out_replay(str(replay.uid))
    replay.refresh_from_db()
    return replay


def shown(client: Client, replay: Replay, query: str = "") -> Any:
    return client.get(f"/replays/{replay.uid}/{query}")


def recorded(decided: Callable[..., list[str]], *amounts: str) -> list[str]:
    begin = timezone.now() - dt.timedelta(hours=1)
    partitions.ensure(begin)
    return decided(*amounts, begin=begin)


def test_a_replay_shows_whose_requests_would_be_denied(
    viewer: Client, decided: Callable[..., list[str]]
) -> None:
    ids = recorded(decided, "250m", "1", "1")
    replay = carried_out(viewer)
    report = shown(viewer, replay).context["report"]
    assert (report.decisions, report.chosen.kind, report.chosen.number) == (3, "to_denied", 2)
    assert {(each.oldest, each.newest) for each in report.rows} == {(ids[1], ids[2])}
    assert report.rows[0].key == "ns/Pod web"
    assert "cpu" in report.rows[0].text


@pytest.mark.parametrize(("by", "key"), [("namespace", "ns"), ("policy", "LimitRange/ns/limits")])
def test_groups_are_by_what_the_reader_chose(
    viewer: Client, decided: Callable[..., list[str]], by: str, key: str
) -> None:
    recorded(decided, "1")
    replay = carried_out(viewer)
    report = shown(viewer, replay, f"?change=to_denied&by={by}").context["report"]
    assert [row.key for row in report.rows] == [key]
    assert report.dimension == by


def test_what_changes_nothing_says_so(viewer: Client, decided: Callable[..., list[str]]) -> None:
    recorded(decided, "250m")
    page = shown(viewer, carried_out(viewer))
    assert page.context["report"].has_changes is False
    assert "Nothing would have changed" in page.content.decode()


def test_a_quota_without_a_journal_says_why(
    viewer: Client, decided: Callable[..., list[str]]
) -> None:
    recorded(decided, "250m")
    quota = factories.manifest("ResourceQuota", {"hard": {"pods": "1"}}, namespace="ns")
    text = yaml.safe_dump(quota)
    replay = carried_out(viewer, manifests=text)
    [curve] = shown(viewer, replay).context["quotas"]
    assert (curve.namespace, curve.problem) == (
        "ns",
        "It does not exist yet, so no journal tells of it.",
    )


def test_the_editor_sends_its_yaml_alone(viewer: Client) -> None:
    answer = viewer.post("/replays/new/", {"cluster": "demo", "yaml": TEXT, "seen": "1"})
    assert answer.status_code == 302
    replay = Replay.objects.get()
    assert (replay.until - replay.since).days == 7
    assert replay.namespaces == ["ns"]


@pytest.mark.parametrize(
    ("field", "text", "code"),
    [
        ("cluster", "hidden", "invalid_choice"),
        ("namespaces", "ns other", "unknown_namespace"),
        ("query", "verdict:maybe", "invalid"),
        ("manifests", "kind: LimitRange", ""),
        ("manifests", "{", ""),
        ("manifests", "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}", "required"),
        ("days", "1000", "invalid_choice"),
    ],
)
def test_a_mistake_stands_at_its_field(viewer: Client, field: str, text: str, code: str) -> None:
    answer = asked(viewer, **{field: text})
    assert answer.status_code == 422
    [error] = answer.context["form"].errors.as_data()[field][:1]
    assert (error.code == code) if code else error.code
    assert Replay.objects.count() == 0


def test_a_replay_goes_on_and_is_cancelled(viewer: Client) -> None:
    asked(viewer)
    replay = Replay.objects.get()
    address = f"/replays/{replay.uid}/progress"
    assert f'data-poll="{address}"' in shown(viewer, replay).content.decode()
    assert 'data-state="queued"' in viewer.get(address).content.decode()
    viewer.post(f"/replays/{replay.uid}/", {"do": "cancel"})
    replay.refresh_from_db()
    assert replay.state == "cancelled"


def test_another_viewer_may_not_cancel_it(viewer: Client, client: Client) -> None:
    asked(viewer)
    replay = Replay.objects.get()
    other = people.nobody("eve")
    people.bind(other, "viewer", cluster="demo", namespace="")
    client.force_login(other)
    client.post(f"/replays/{replay.uid}/", {"do": "cancel"})
    replay.refresh_from_db()
    assert replay.state == "queued"


def test_who_sees_a_part_does_not_see_the_replay(viewer: Client, client: Client) -> None:
    asked(viewer)
    replay = Replay.objects.get()
    other = people.nobody("eve")
    people.bind(other, "viewer", cluster="demo", namespace="web")
    client.force_login(other)
    assert client.get(f"/replays/{replay.uid}/").status_code == 404
    assert client.post(f"/replays/{replay.uid}/", {"do": "again"}).status_code == 404


def test_the_same_is_replayed_again(viewer: Client) -> None:
    asked(viewer)
    first = Replay.objects.get()
    first.cancel(timezone.now())
    answer = viewer.post(f"/replays/{first.uid}/", {"do": "again"})
    second = Replay.objects.exclude(pk=first.pk).get()
    assert answer["Location"] == f"/replays/{second.uid}/"
    assert (second.proposal, second.since, second.namespaces) == (
        first.proposal,
        first.since,
        first.namespaces,
    )


def test_a_person_has_five_replays_at_once(viewer: Client) -> None:
    for _ in range(5):
        assert asked(viewer).status_code == 302
    refused = asked(viewer)
    assert refused.status_code == 422
    assert refused.context["form"].errors.as_data()["__all__"][0].code == "too_many"


def test_the_list_has_the_flips_without_the_reports(
    viewer: Client, decided: Callable[..., list[str]]
) -> None:
    recorded(decided, "250m", "1", "1")
    carried_out(viewer)
    asked(viewer)
    waiting, done = viewer.get("/replays/").context["page"]
    assert (done.to_denied, done.to_allowed, waiting.to_denied) == (2, 0, None)
    assert "report" in done.get_deferred_fields()
