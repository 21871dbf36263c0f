"""Pages as of an instant: what was there then, for whom, and nothing that writes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse
from django.utils import timezone

from policies import services
from policies.history import format_instant
from policies.models import (
    ChangeItem,
    ChangeSet,
    LimitRange,
    PolicyRevision,
    Rollout,
    RolloutStage,
)
from portal.pages.past import urls
from portal.pages.views import PAST
from tests import builders, changes, charges, factories, people

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import DjangoAssertMaxNumQueries

pytestmark = pytest.mark.django_db
assert urls.urlpatterns  # they fill PAST
PLACES = {
    "cluster-detail": ["prod"],
    "namespace-list": ["prod"],
    "namespace": ["prod", "team"],
    "namespace-policies": ["prod", "team"],
}


def address(route: str) -> str:
    return reverse(route, args=PLACES.get(route, []))


@pytest.fixture
def then() -> str:
    """An instant with a range of 100m and a quota with one pod, both changed since."""
    item: dict[str, Any] = {"type": "Container", "default": {"cpu": "100m"}}
    factories.limit_range(item, name="old-limits")
    factories.resource_quota({"pods": "7"})
    charges.admit(builders.request(builders.pod(uid="u"), namespace="team"))
    instant = timezone.now()
    services.delete_policy(policy=LimitRange.objects.get(), user="ada")
    factories.resource_quota({"pods": "9"})
    charges.admit(builders.request(builders.pod(uid="v"), namespace="team"))
    return format_instant(instant)


@pytest.fixture
def viewer(client: Client) -> Client:
    client.force_login(people.person("ada"))
    return client


def text(client: Client, route: str, **query: str) -> str:
    answer = client.get(address(route), query)
    assert answer.status_code == 200, route
    return answer.content.decode()


@pytest.mark.parametrize("route", ["all-policies", "namespace", "namespace-policies"])
def test_a_deleted_policy_is_shown_as_of_the_time_it_was_there(
    viewer: Client, then: str, route: str
) -> None:
    assert "old-limits" not in text(viewer, route, at=format_instant(timezone.now()))
    shown = text(viewer, route, at=then)
    assert "old-limits" in shown
    assert "100m" in shown


def test_quotas_show_what_was_used_then(viewer: Client, then: str) -> None:
    assert "pods 1 of 7 (14 %)" in text(viewer, "quota-board", at=then)
    now = format_instant(timezone.now())
    assert "pods 2 of 9 (22 %)" in text(viewer, "quota-board", at=now)


@pytest.mark.parametrize("route", sorted(PAST))
def test_every_page_of_the_past_says_so_and_has_no_form_that_writes(
    viewer: Client, then: str, route: str
) -> None:
    shown = text(viewer, route, at=then)
    assert "Back to now" in shown
    main = shown.partition("<main")[2].partition("</main>")[0]
    assert 'method="post"' not in main
    assert "hx-post" not in main


@pytest.mark.parametrize("route", sorted(PAST))
@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("yesterday", "must be a time such as"),
        ("2999-01-01T00:00Z", "lies in the future"),
        ("1999-01-01T00:00Z", "the record of policies begins at"),
    ],
)
def test_an_instant_that_cannot_be_shown_is_answered_with_its_reason(
    viewer: Client, then: str, route: str, at: str, words: str
) -> None:
    assert then
    answer = viewer.get(address(route), {"at": at})
    assert answer.status_code == 400
    assert words in answer.content.decode()


@pytest.mark.parametrize("route", sorted(PAST))
def test_the_past_of_a_place_is_hidden_from_those_who_may_not_see_it(
    client: Client, then: str, route: str
) -> None:
    client.force_login(people.person("eve", cluster="other"))
    answer = client.get(address(route), {"at": then})
    if PLACES.get(route):
        assert answer.status_code == 404
    else:
        assert "old-limits" not in answer.content.decode()
        assert "prod" not in answer.content.decode().partition("<main")[2]


def test_a_page_without_a_past_leads_to_the_present(viewer: Client, then: str) -> None:
    answer = viewer.get(reverse("changes"), {"at": then, "cluster": "prod"})
    assert answer.status_code == 302
    assert answer["Location"] == f"{reverse('changes')}?cluster=prod"
    assert "shows the present" in str(next(iter(get_messages(answer.wsgi_request))))


def test_navigation_stays_in_the_past(viewer: Client, then: str) -> None:
    shown = text(viewer, "all-policies", at=then)
    assert f"{reverse('quota-board')}?at=" in shown
    assert f"{reverse('changes')}?at=" not in shown


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_write_to_an_address_of_the_past_is_refused(
    viewer: Client, then: str, method: str
) -> None:
    before = PolicyRevision.objects.count()
    for route in ("all-policies", "login", "logout", "namespace", "admin:index"):
        answer = getattr(viewer, method)(f"{address(route)}?at={then}")
        assert answer.status_code == 409, route
    assert PolicyRevision.objects.count() == before


@pytest.mark.parametrize("route", sorted(PAST))
def test_a_page_of_the_past_takes_few_queries(
    viewer: Client,
    then: str,
    route: str,
    django_assert_max_num_queries: DjangoAssertMaxNumQueries,
) -> None:
    for number in range(5):
        factories.limit_range({"type": "Pod"}, name=f"lr{number}", namespace=f"ns{number}")
    now = format_instant(timezone.now() - dt.timedelta(microseconds=1))
    with django_assert_max_num_queries(24):
        text(viewer, route, at=now)


def test_two_instants_are_compared_in_words(viewer: Client, then: str) -> None:
    shown = text(viewer, "compare", **{"from": then, "cluster": "prod", "namespace": "team"})
    assert "LimitRange deleted" in shown
    assert "limit of pods raised from 7 to 9" in shown
    assert "use of pods rose from 1 to 2" in shown
    assert "Not compared, since no record reaches both instants: roles" in " ".join(shown.split())


def test_an_unreadable_instant_of_a_comparison_is_named(viewer: Client, then: str) -> None:
    assert then
    assert "From: Invalid value" in text(viewer, "compare", **{"from": "soon"})


def test_what_was_changed_and_changed_back_does_not_differ(viewer: Client, then: str) -> None:
    factories.resource_quota({"pods": "7"})
    shown = text(viewer, "compare", **{"from": then})
    assert "old-limits" in shown
    assert "limit of pods" not in shown


def test_a_comparison_leaves_out_what_the_reader_may_not_see(client: Client, then: str) -> None:
    client.force_login(people.person("eve", cluster="other"))
    shown = text(client, "compare", **{"from": then})
    assert "Nothing differs" in shown


def test_the_picker_reads_and_shows_the_zone_of_the_reader(viewer: Client, then: str) -> None:
    viewer.cookies["zone"] = "Asia/Tokyo"
    local = timezone.now().astimezone(ZoneInfo("Asia/Tokyo"))
    answer = viewer.get(address("all-policies"), {"at": f"{local:%Y-%m-%dT%H:%M:%S.%f}", "q": "a"})
    assert answer.status_code == 302
    # The address is the same for readers of all zones.
    utc = format_instant(local)
    assert answer["Location"] == f"{address('all-policies')}?{urlencode({'q': 'a', 'at': utc})}"
    shown = text(viewer, "all-policies", at=utc)
    assert "As of (UTC+9)" in shown
    assert f'value="{local:%Y-%m-%dT%H:%M}"' in shown


def test_an_instant_just_before_a_change_leads_to_it(viewer: Client, then: str) -> None:
    item: dict[str, Any] = {"type": "Container", "default": {"cpu": "1"}}
    document = factories.manifest("LimitRange", {"limits": [item]}, name="tight")
    instant = format_instant(timezone.now())
    change = changes.published(changes.change_of(document, cluster="prod"))
    shown = text(viewer, "namespace", at=instant)
    assert f"before change #{change.pk}" in shown
    assert reverse("change", args=[change.pk]) in shown
    assert "before change" not in text(viewer, "namespace", at=format_instant(timezone.now()))


def test_a_namespace_says_in_which_stage_of_a_rollout_it_was(viewer: Client, then: str) -> None:
    change = ChangeSet.objects.create(title="tighten", author="ada", state="rolling_out")
    ChangeItem.objects.create(
        change=change, cluster="prod", kind="LimitRange", namespace="team", name="lr",
        content={}, wave=2,
    )  # fmt: skip
    rollout = Rollout.objects.create(change=change, plan={}, at=1, total=2)
    RolloutStage.objects.create(
        rollout=rollout, number=1, wave=1, mode="audit", began=timezone.now()
    )
    now = format_instant(timezone.now())
    assert "Not reached: wave 2, while wave 1 was out" in text(viewer, "namespace", at=now)
    RolloutStage.objects.create(
        rollout=rollout, number=2, wave=2, mode="warn", began=timezone.now()
    )
    now = format_instant(timezone.now())
    assert "Wave 2 in <b>warn</b>" in text(viewer, "namespace", at=now)
    assert "Roll-outs" not in text(viewer, "namespace", at=then)
