"""Objects as of an instant: whole writes, in the order of their numbers."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from policies import history, services
from policies.models import Namespace, PolicyRevision
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import DjangoAssertNumQueries

    Write = Callable[..., None]

pytestmark = pytest.mark.django_db
BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def at(minutes: int) -> dt.datetime:
    return BEGIN + dt.timedelta(minutes=minutes)


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> Write:
    """Store a revision as a process did whose clock showed these minutes."""

    def store(number: int, minutes: int, *, name: str = "a", action: str = "update") -> None:
        monkeypatch.setattr(timezone, "now", lambda: at(minutes))
        PolicyRevision.objects.create(
            cluster="prod",
            namespace="team",
            kind="LimitRange",
            name=name,
            number=PolicyRevision.objects.filter(name=name).count() + 1,
            action=action,
            user="ada",
            after=None if action == "delete" else {"write": number},
            cluster_revision=number,
        )

    return store


def writes_at(minutes: int) -> dict[str, int]:
    return {each.name: each.manifest["write"] for each in history.policies_at("prod", at(minutes))}


def test_an_object_is_as_its_last_write_left_it(write: Write) -> None:
    write(1, 10)
    write(2, 20)
    assert [writes_at(minutes) for minutes in (9, 10, 19, 20)] == [{}, {"a": 1}, {"a": 1}, {"a": 2}]


def test_a_deleted_object_is_gone_until_it_is_made_again(write: Write) -> None:
    write(1, 10)
    write(2, 20, action="delete")
    write(3, 30, action="create")
    assert [writes_at(minutes) for minutes in (10, 20, 30)] == [{"a": 1}, {}, {"a": 3}]


def test_a_write_counts_from_the_time_of_its_last_row_on(write: Write) -> None:
    write(1, 10)
    write(2, 20)
    write(2, 25, name="b")
    assert writes_at(24) == {"a": 1}
    assert writes_at(25) == {"a": 2, "b": 2}


def test_writes_keep_their_order_though_a_clock_was_set_back(write: Write) -> None:
    write(1, 10)
    write(2, 30)
    write(3, 20, name="b")
    assert writes_at(20) == {"a": 2, "b": 3}


def test_several_instants_are_read_as_each_of_them(write: Write) -> None:
    write(1, 10)
    write(2, 20)
    write(2, 25, name="b")
    instants = [at(minutes) for minutes in (25, 9, 24, 10, 20)]
    found = history.revisions_at_each(["prod", "test"], instants)
    assert found == [{"prod": 2}, {}, {"prod": 1}, {"prod": 1}, {"prod": 1}]
    assert found == [history.revisions_at(["prod", "test"], each) for each in instants]


def test_clusters_do_not_mix() -> None:
    factories.namespace("team", in_cluster="prod")
    factories.namespace("team", in_cluster="test")
    now = timezone.now()
    assert history.revision_at("prod", now) == 2
    assert [each.cluster for each in history.namespaces_at("test", now)] == ["test"]


def test_some_namespaces_can_be_asked_for() -> None:
    factories.limit_range({"type": "Pod"})
    factories.limit_range({"type": "Pod"}, namespace="shop")
    found = history.policies_at("prod", timezone.now(), namespaces=["shop"])
    assert [each.namespace for each in found] == ["shop"]


def test_a_deleted_namespace_is_shown_with_its_labels_then() -> None:
    namespace = factories.namespace()
    namespace.labels = {"tier": "gold"}
    services.save_namespace(namespace=namespace, user="ada")
    then = timezone.now()
    services.delete_namespace(namespace=Namespace.objects.get(), user="ada")
    [found] = history.namespaces_at("prod", then)
    assert found.manifest["metadata"]["labels"] == {"tier": "gold"}
    assert history.namespaces_at("prod", timezone.now()) == []


def test_policies_take_three_queries_whatever_their_number(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(4):
        factories.limit_range({"type": "Pod"}, name=f"lr{number}")
    with django_assert_num_queries(3):
        assert len(history.policies_at("prod", timezone.now())) == 4
