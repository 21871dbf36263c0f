"""The pages of namespace classes: previewed before they are saved, exceptions given back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies import services
from policies.manifests.render import render_manifests
from policies.models import ClassPolicy, LimitRange, Namespace, NamespaceClass
from tests import factories, people
from tests.namespace_classes import class_manifest, limits, quota, saved_class
from tests.running_pods import asks, running

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


def yaml(**spec: Any) -> str:
    return render_manifests([class_manifest(**spec)])


def test_without_classes_the_list_says_what_they_are_for() -> None:
    page = signed_in().get(LIST).content.decode()
    assert NEW in page
    assert "<table" not in page


def test_a_class_is_previewed_saved_and_shown() -> None:
    client = signed_in()
    factories.namespace("a")
    previewed = client.post(NEW, {"do": "preview", "text": yaml(), "seen": "0"})
    assert (previewed.status_code, previewed.context["matched"]) == (200, 1)
    assert [(line.action, line.places) for line in previewed.context["lines"]] == [
        ("make", ["prod/a"]), ("make", ["prod/a"]),
    ]  # fmt: skip
    assert not NamespaceClass.objects.exists()
    unsaid = client.post(NEW, {"do": "save", "text": yaml(), "seen": "0"})
    assert unsaid.status_code == 422
    saved = client.post(NEW, {"do": "save", "text": yaml(), "seen": "0", "reason": "r"})
    assert (saved.status_code, saved["Location"]) == (302, PAGE)
    assert "/clusters/prod/namespaces/a/" in client.get(PAGE).content.decode()
    assert PAGE in client.get(LIST).content.decode()


def test_a_save_that_was_overtaken_stores_nothing() -> None:
    saved_class()
    text = yaml(policies=[limits("1")])
    late = signed_in().post(EDIT, {"do": "save", "text": text, "seen": "0", "reason": "r"})
    assert late.status_code == 409
    assert NamespaceClass.objects.get().version == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [",
        yaml(name="other"),
        yaml(policies=[limits("1")]).replace("kind: LimitRange", "kind: Pod"),
        f"{yaml()}---\n{yaml(name='more')}",
    ],
)
def test_what_is_wrong_is_listed(text: str) -> None:
    saved_class()
    answer = signed_in().post(EDIT, {"do": "preview", "text": text, "seen": "1"})
    assert (answer.status_code, bool(answer.context["problems"])) == (422, True)


def test_the_preview_counts_running_pods_that_could_not_restart() -> None:
    saved_class(policies=[quota(pods="9")])
    factories.namespace("team")
    running(asks("web-1"), asks("web-2"))
    ranged = {**limits("1"), "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}
    text = yaml(policies=[quota(pods="9"), ranged])
    restarts = (
        signed_in().post(EDIT, {"do": "preview", "text": text, "seen": "1"}).context["restarts"]
    )
    assert (restarts.pods, restarts.refused) == (2, 2)
    [row] = restarts.rows
    assert (row.cluster, row.namespace) == ("prod", "team")


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


def test_a_class_is_deleted_with_a_reason() -> None:
    saved_class()
    client = signed_in()
    assert client.post(EDIT, {"do": "delete", "seen": "1"}).status_code == 422
    assert client.post(EDIT, {"do": "delete", "seen": "1", "reason": "r"}).status_code == 302
    assert not NamespaceClass.objects.exists()


@pytest.mark.parametrize("address", [LIST, PAGE, NEW, EDIT])
def test_those_who_see_a_part_of_the_fleet_get_no_page(address: str) -> None:
    saved_class()
    part = signed_in(people.person("p", "admin", cluster="prod"))
    assert part.get(address).status_code == 403
    viewer = signed_in(people.person("v", "viewer"))
    assert viewer.get(address).status_code == 200
    if address in (NEW, EDIT):
        assert viewer.post(address, {"do": "preview", "text": yaml()}).status_code == 403
