"""The list and the pages of namespace classes: exceptions given back, deletions confirmed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client

from policies import services
from policies.manifests.render import render_manifests
from policies.models import ClassPolicy, LimitRange, Namespace
from tests import factories, people
from tests.namespace_classes import class_manifest, limits, saved_class

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db
LIST = "/namespace-classes/"
NEW = f"{LIST}-/new/"
PAGE = f"{LIST}team/"
EDIT = f"{PAGE}edit/"


def signed_in(user: User | None = None) -> Client:
    client = Client()
    client.force_login(user or people.person(role="admin"))
    return client


def yaml() -> str:
    return render_manifests([class_manifest()])


def test_without_classes_the_list_says_what_they_are_for() -> None:
    page = signed_in().get(LIST).content.decode()
    assert NEW in page
    assert "<table" not in page


def test_an_exception_is_given_back_on_the_page() -> None:
    saved_class()
    factories.namespace("team")
    factories.resource_quota({"pods": "99"}, name="amounts")
    client = signed_in()
    assert "spec.hard[pods]" in client.get(PAGE).content.decode()
    row = ClassPolicy.objects.get(exception_count__gt=0)
    client.post(PAGE, {"give_back": str(row.pk)})
    assert not ClassPolicy.objects.filter(exception_count__gt=0)


def test_held_deletions_go_on_when_somebody_confirms_them() -> None:
    saved_class(labels={"tier": "x"}, onLeave="remove", policies=[limits("1")])
    manifests = [
        {"kind": "Namespace", "metadata": {"name": f"n{number}", "labels": {"tier": "x"}}}
        for number in range(12)
    ]
    cluster = factories.cluster()
    services.create_many(cluster=cluster, manifests=manifests, user="cluster:prod")
    with services.policy_write(cluster):
        for namespace in Namespace.objects.all():
            namespace.labels = {}
            services.save_namespace(namespace=namespace, user="cluster:prod")
    assert LimitRange.objects.count() == 12
    client = signed_in()
    assert client.get(PAGE).context["held"] == 12
    client.post(PAGE, {"leave": "11"})
    assert LimitRange.objects.count() == 12
    client.post(PAGE, {"leave": "12"})
    assert LimitRange.objects.count() == 0


@pytest.mark.parametrize("address", [LIST, PAGE, NEW, EDIT])
def test_those_who_see_a_part_of_the_fleet_get_no_page(address: str) -> None:
    saved_class()
    part = signed_in(people.person("p", "admin", cluster="prod"))
    assert part.get(address).status_code == 403
    viewer = signed_in(people.person("v", "viewer"))
    assert viewer.get(address).status_code == 200
    if address in (NEW, EDIT):
        assert viewer.post(address, {"do": "impact", "yaml": yaml()}).status_code == 403
