"""Effective access: the answer, its rule, and the matrix agree with what pages allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from policies import roles
from policies.models import RoleBinding
from portal.pages.access import effective_access
from portal.pages.access.effective_access import COLUMNS, QUESTIONS, question_of
from tests import factories, people

if TYPE_CHECKING:
    from portal.pages.access.effective_access import Answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def prod() -> Any:
    cluster = factories.cluster()
    for name in ("team-a", "team-b", "other"):
        factories.namespace(name)
    return cluster


def asked(subject: Any, key: str, namespace: str, *, reader: Any) -> Answer:
    place = roles.RoleScope("prod", namespace)
    return effective_access.answer(subject, question_of(key), place, reader=reader)


def test_answer_names_the_role_that_grants_it() -> None:
    reader = people.person("root", "admin")
    bob = people.person("bob", "editor", namespace="team-*")
    yes = asked(bob, "ResourceQuota", "team-a", reader=reader)
    assert (yes.is_allowed, yes.rule) == (True, "Role editor of team-*.")
    no = asked(bob, "ResourceQuota", "other", reader=reader)
    assert (no.is_allowed, no.rule, no.givers) == (
        False,
        "No role of bob grants this in prod / other.",
        "root",
    )


def test_objects_of_a_cluster_need_a_role_for_all_of_it() -> None:
    reader = people.person("root", "admin")
    bob = people.person("bob", "editor", namespace="team-a")
    no = asked(bob, "PriorityClass", "team-a", reader=reader)
    assert (no.is_allowed, no.rule) == (False, "This needs a role for the whole of prod.")
    people.bind(bob, "editor", cluster="prod")
    assert asked(User.objects.get(pk=bob.pk), "PriorityClass", "team-a", reader=reader).is_allowed


def test_role_of_a_group_is_named_with_the_group() -> None:
    reader, bob = people.person("root", "admin"), people.nobody("bob")
    ours = Group.objects.create(name="ours")
    ours.user_set.add(bob)
    RoleBinding.objects.create(group=ours, role="approver", cluster="prod")
    assert asked(bob, "settle", "x", reader=reader).rule == "Role approver of prod, by group ours."
    assert asked(ours, "settle", "x", reader=reader).rule == "Role approver of prod."
    assert not asked(ours, "LimitRange", "x", reader=reader).is_allowed


def test_rule_that_a_reader_may_not_know_stays_hidden() -> None:
    reader = people.person("ada", "admin", cluster="prod", namespace="team-a")
    bob = people.person("bob", "admin")
    known = asked(bob, "roles", "team-a", reader=reader)
    assert (known.is_allowed, known.rule) == (True, "By a role of a wider scope than yours.")


def test_superusers_need_no_role() -> None:
    root = User.objects.create_superuser("root", password="right-horse")
    assert asked(root, "roles", "x", reader=root).rule == "Superusers need no role."


@pytest.mark.parametrize("role", RoleBinding.Role.values)
def test_answers_are_those_of_pages_and_api(role: str) -> None:
    reader = people.person("root", "admin")
    bob = people.person("bob", role, cluster="prod", namespace="team-*")
    for question in QUESTIONS:
        namespace = "" if question.is_of_cluster else "team-a"
        told = asked(bob, question.key, "team-a", reader=reader).is_allowed
        if question.permission:
            assert told == roles.may(bob, question.permission, cluster="prod", namespace=namespace)
        else:
            assert told == roles.sees(bob, "prod", namespace)


def test_matrix_has_the_most_first_and_the_rest_in_one_row(prod: Any) -> None:
    del prod
    bob = people.person("bob", "editor", namespace="team-*")
    places = effective_access.places_of(people.person("root", "admin"))
    rows = effective_access.matrix(bob, places)
    assert [name for name, _ in COLUMNS] == ["View", "Edit", "Hold", "Settle", "Give roles"]
    assert [(row.place, row.cells) for row in rows] == [
        ("prod / team-a", (True, True, False, False, False)),
        ("prod / team-b", (True, True, False, False, False)),
        ("1 other namespace", (False,) * 5),
    ]


def test_matrix_of_one_access_everywhere_is_one_row(prod: Any) -> None:
    del prod
    root = people.person("root", "admin")
    rows = effective_access.matrix(root, effective_access.places_of(root))
    assert {row.cells for row in rows} == {(True,) * 5}
    nobody = effective_access.matrix(people.nobody("bob"), effective_access.places_of(root))
    assert [row.place for row in nobody] == ["every namespace (3)"]


@pytest.mark.parametrize("words", ["", "nowhere", "prod / other", "nowhere / team-a", "\0 / x"])
def test_unseen_places_get_no_answer(prod: Any, words: str) -> None:
    del prod
    reader = people.person("ada", "admin", cluster="prod", namespace="team-a")
    assert effective_access.place_of(words, reader=reader) is None


def test_page_answers_the_question_of_its_address(prod: Any) -> None:
    del prod
    client = Client()
    client.force_login(people.person("root", "admin"))
    people.person("bob", "editor", namespace="team-*")
    address = "/people/?who=bob&ask=LimitRange&in="
    assert client.get(f"{address}prod / team-b").context["person"].answer.is_allowed
    assert not client.get(f"{address}prod / other").context["person"].answer.is_allowed
    assert client.get(f"{address}prod / nowhere%00").status_code == 200
