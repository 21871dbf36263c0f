"""Two instants compared: what differs, told by its text, and put in words for what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from policies import history, services
from policies.history.usage import growth_between
from policies.ledger.release import release
from policies.models import LimitRange, PolicyRevision, ResourceQuota
from tests import builders, charges, factories, people

if TYPE_CHECKING:
    import datetime as dt

    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db


def item(cpu: str) -> dict[str, Any]:
    return {"type": "Container", "default": {"cpu": cpu}}


def compared(begin: dt.datetime, end: dt.datetime | None = None) -> history.Comparison:
    user = people.person("root", role="admin")
    return history.compare_seen(
        user,
        history.TwoInstants(begin=begin, end=end or timezone.now(), namespace="team"),
        clusters=history.clusters_seen(user),
        known=history.horizon(),
    )


def objects(found: history.Comparison) -> list[tuple[str, str, list[str]]]:
    return [
        (each.kind, each.name, list(each.words))
        for each in found.differences
        if each.kind != history.ROLE_KIND
    ]


def test_what_was_changed_back_is_no_difference() -> None:
    factories.limit_range(item("1"), name="back")
    factories.limit_range(item("1"), name="forth")
    then = timezone.now()
    for cpu in ("2", "1"):
        factories.limit_range(item(cpu), name="back")
    factories.limit_range(item("2"), name="forth")
    raised = ["cpu default limit of Container raised from 1 to 2"]
    assert objects(compared(then)) == [("LimitRange", "forth", raised)]


def test_another_order_that_has_no_words_is_no_difference() -> None:
    factories.limit_range(item("1"), {"type": "Pod", "max": {"cpu": "4"}})
    then = timezone.now()
    factories.limit_range({"type": "Pod", "max": {"cpu": "4"}}, item("1"))
    last = PolicyRevision.objects.filter(kind="LimitRange")[0]
    assert last.before != last.after
    assert objects(compared(then)) == []


def test_what_came_and_went_in_between_is_no_difference() -> None:
    factories.namespace()
    then = timezone.now()
    factories.limit_range(item("1"))
    services.delete_policy(policy=LimitRange.objects.get(), user="ada")
    assert objects(compared(then)) == []


def test_what_was_deleted_and_made_again_is_changed() -> None:
    factories.limit_range(item("1"))
    then = timezone.now()
    services.delete_policy(policy=LimitRange.objects.get(), user="ada")
    factories.limit_range(item("2"))
    [found] = objects(compared(then))
    assert found[2] == ["cpu default limit of Container raised from 1 to 2"]


def test_what_was_gone_at_the_first_instant_was_created() -> None:
    factories.limit_range(item("1"))
    services.delete_policy(policy=LimitRange.objects.get(), user="ada")
    then = timezone.now()
    factories.limit_range(item("2"))
    [found] = [each for each in compared(then).differences if each.kind == "LimitRange"]
    assert found.before is None
    assert found.words[0] == "LimitRange created"


@pytest.mark.parametrize("is_backwards", [False, True])
def test_a_difference_names_the_newest_write_that_made_either_side(*, is_backwards: bool) -> None:
    factories.limit_range(item("1"))
    then = timezone.now()
    services.delete_policy(policy=LimitRange.objects.get(), user="ada")
    instants = (then, timezone.now())
    found = compared(*(instants[::-1] if is_backwards else instants))
    [gone] = [each for each in found.differences if each.kind == "LimitRange"]
    made = PolicyRevision.objects.get(kind="LimitRange", action="create")
    assert gone.written is not None
    assert (gone.written.id, gone.written.user) == (made.pk, factories.USER)
    sides = (gone.before, gone.after)
    assert sides == ((None, made.after) if is_backwards else (made.after, None))


def test_only_what_is_shown_is_read_whole(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    factories.namespace()
    then = timezone.now()
    for number in range(5):
        factories.limit_range(item("1"), name=f"lr{number}")
    found = compared(then).differences
    with django_assert_num_queries(0):
        assert len(found) == 5
    with CaptureQueriesContext(connection) as asked:
        shown = found[1:3]
    assert [each.name for each in shown] == ["lr1", "lr2"]
    [statement] = asked.captured_queries
    ids = {str(each.written.id) for each in shown if each.written}
    assert statement["sql"].split(" IN (")[1].rstrip(")").replace(",", " ").split() == sorted(ids)
    with django_assert_num_queries(1):
        assert [each.name for each in found] == [f"lr{number}" for number in range(5)]
    assert found[4].name == "lr4"


def test_charges_that_came_and_went_move_no_quota() -> None:
    quota = factories.resource_quota({"pods": "9"})
    then = timezone.now()
    for uid in "uvw":
        charges.admit(builders.request(builders.pod(uid=uid), namespace="team"))
    for uid in "uv":
        release("prod", resource="pods", uid=uid)
    between = timezone.now()
    growth = growth_between(then, between)
    assert {uid: {name: str(q) for name, q in each.items()} for uid, each in growth.items()} == {
        quota.uid: {"pods": "1"}
    }
    release("prod", resource="pods", uid="w")
    assert growth_between(then, timezone.now()) == {}
    assert growth_between(between, timezone.now()).keys() == {ResourceQuota.objects.get().uid}


def test_equal_amounts_written_otherwise_cancel_out() -> None:
    factories.resource_quota({"requests.memory": "9Gi"})
    then = timezone.now()
    for uid, memory in (("u", "1Gi"), ("v", "1024Mi")):
        container = builders.container(requests={"memory": memory})
        charges.admit(builders.request(builders.pod(container, uid=uid), namespace="team"))
    release("prod", resource="pods", uid="u")
    [growth] = growth_between(then, timezone.now()).values()
    assert {name: each.nano for name, each in growth.items()} == {"requests.memory": 2**30 * 10**9}
