"""Namespaces get what their class says, when they become known, and lose or keep it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from engine.namespace_class import PARAMETER_PREFIX
from policies import services, snapshot
from policies.models import (
    ClassMember,
    ClassPolicy,
    LimitRange,
    MetadataPolicy,
    Namespace,
    NamespaceClass,
    NamespaceClassVersion,
    ObjectManagers,
    PolicyRevision,
    ResourceQuota,
)
from tests import factories
from tests.namespace_classes import class_manifest, limits, quota, saved_class

pytestmark = pytest.mark.django_db


def names_in(namespace: str, cluster: str = "prod") -> set[tuple[str, str]]:
    place = {"namespace__cluster__name": cluster, "namespace__name": namespace}
    return {
        (model.kind, name)
        for model in (LimitRange, MetadataPolicy, ResourceQuota)
        for name in model.objects.filter(**place).values_list("name", flat=True)
    }


def relabel(namespace: str, labels: dict[str, str], **annotations: str) -> None:
    stored = Namespace.objects.get(name=namespace)
    stored.labels, stored.annotations = labels, annotations
    services.save_namespace(namespace=stored, user="ann")


def hard_of(namespace: str) -> dict[str, str]:
    found = ResourceQuota.objects.get(namespace__name=namespace, name="amounts")
    hard: dict[str, str] = found.to_manifest()["spec"]["hard"]
    return hard


def exceptions_in(namespace: str) -> list[str]:
    rows = ClassPolicy.objects.filter(namespace__name=namespace)
    return [each.field for row in rows for each in services.exceptions_of(row)]


def test_a_new_namespace_gets_its_policies_and_they_remember_class_and_version() -> None:
    saved_class("team", names=["team-*"])
    factories.namespace("team-a")
    factories.namespace("other")
    assert names_in("team-a") == {("LimitRange", "defaults"), ("ResourceQuota", "amounts")}
    assert names_in("other") == set()
    row = ClassPolicy.objects.get(namespace__name="team-a", kind="LimitRange")
    assert (row.namespace_class.name, row.version, row.was_made) == ("team", 1, True)
    revision = PolicyRevision.objects.get(kind="LimitRange", namespace="team-a")
    assert (revision.manager, revision.user) == ("class:team", factories.USER)


def test_made_policies_are_in_force_with_the_namespaces_own_write() -> None:
    saved_class("team")
    factories.namespace("team-a")
    [made] = snapshot.refresh().clusters["prod"].policy_set("team-a").limit_ranges
    assert made.name == "defaults"


@pytest.mark.parametrize("way", ["save", "apply", "create_many", "store_previews", "policy"])
def test_whoever_writes_the_namespace(way: str) -> None:
    saved_class("team")
    cluster = factories.cluster()
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    if way == "save":
        services.save_namespace(namespace=Namespace(cluster=cluster, name="a"), user="ann")
    elif way == "apply":
        services.apply_manifest(cluster=cluster, manifest=manifest, user="ann")
    elif way == "create_many":
        services.create_many(cluster=cluster, manifests=[manifest], user="cluster:prod")
    elif way == "store_previews":
        previews = services.preview_many(cluster=cluster, manifests=[manifest])
        pairs = [(previews[0], manifest)]
        services.store_previews(cluster=cluster, previews=pairs, user="ann")
    else:
        factories.resource_quota({"pods": "1"}, name="own")
        manifest["metadata"]["name"] = "team"  # type: ignore[index]  # a map
    name = "team" if way == "policy" else "a"
    assert ("LimitRange", "defaults") in names_in(name)


def test_a_label_makes_a_member_and_the_class_says_whether_policies_stay() -> None:
    for on_leave, left in (("keep", 2), ("remove", 0)):
        name = f"c-{on_leave}"
        saved_class(name, labels={"tier": on_leave}, onLeave=on_leave)
        factories.namespace(f"ns-{on_leave}")
        assert names_in(f"ns-{on_leave}") == set()
        relabel(f"ns-{on_leave}", {"tier": on_leave})
        assert len(names_in(f"ns-{on_leave}")) == 2
        relabel(f"ns-{on_leave}", {})
        assert len(names_in(f"ns-{on_leave}")) == left
    assert not ClassMember.objects.exists()
    assert not ClassPolicy.objects.exists()


def test_a_namespace_sets_parameters_by_annotation() -> None:
    saved_class("team")
    factories.namespace("a")
    assert hard_of("a")["pods"] == "10"
    relabel("a", {}, **{f"{PARAMETER_PREFIX}pods": "25"})
    assert hard_of("a")["pods"] == "25"
    assert exceptions_in("a") == []


def test_a_value_that_is_no_quantity_is_a_problem_and_the_default_stands() -> None:
    saved_class("team")
    factories.namespace("a")
    relabel("a", {}, **{f"{PARAMETER_PREFIX}pods": "many"})
    assert hard_of("a")["pods"] == "10"
    [problem] = ClassMember.objects.get().problems
    assert f"{PARAMETER_PREFIX}pods" in problem


def test_of_two_classes_all_apply_and_the_first_by_name_makes_what_both_want() -> None:
    saved_class("b", policies=[limits("200m"), limits("1", name="more")])
    saved_class("a", policies=[limits("100m")])
    factories.namespace("x")
    assert names_in("x") == {("LimitRange", "defaults"), ("LimitRange", "more")}
    of_policy = dict(ClassPolicy.objects.values_list("name", "namespace_class__name"))
    assert of_policy == {"defaults": "a", "more": "b"}
    assert ClassMember.objects.get(namespace_class__name="b").problems == [
        "LimitRange defaults: class a makes it already"
    ]


def test_what_somebody_changed_in_one_namespace_stays_until_it_is_given_back() -> None:
    saved_class("team")
    for name in ("a", "b"):
        factories.namespace(name)
    factories.apply({**quota(pods="99"), "metadata": {"name": "amounts", "namespace": "a"}})
    assert exceptions_in("a") == ["spec.hard[pods]"]
    assert services.preview_class(class_manifest("team", policies=[quota()])).exceptions == 1
    saved_class("team", policies=[limits("300m"), quota(pods="12", secrets="7")], version=1)
    assert hard_of("a") == {"pods": "99", "secrets": "7"}
    assert hard_of("b") == {"pods": "12", "secrets": "7"}
    [row] = ClassPolicy.objects.filter(exception_count__gt=0)
    [exception] = services.exceptions_of(row)
    assert (exception.field, exception.manager.manager) == (
        "spec.hard[pods]", f"ui:{factories.USER}",
    )  # fmt: skip
    services.give_back(policy=row, user="ann")
    assert hard_of("a")["pods"] == "12"
    assert exceptions_in("a") == []
    managers = ObjectManagers.objects.get(namespace="a", kind="ResourceQuota")
    assert managers.fields["spec.hard[pods]"]["manager"] == "class:team"


def test_a_deleted_policy_is_not_made_again_until_it_is_given_back() -> None:
    saved_class("team")
    factories.namespace("a")
    services.delete_policy(policy=LimitRange.objects.get(), user="ann")
    saved_class("team", policies=[limits("300m"), quota()], version=1)
    relabel("a", {"x": "y"})
    assert names_in("a") == {("ResourceQuota", "amounts")}
    row = ClassPolicy.objects.get(kind="LimitRange")
    [exception] = services.exceptions_of(row)
    assert (exception.field, exception.manager.manager) == ("", "ui:ann")
    services.give_back(policy=row, user="ann")
    assert len(names_in("a")) == 2


def test_a_policy_that_was_there_before_keeps_its_fields_and_is_never_removed() -> None:
    factories.apply({**limits("5"), "metadata": {"name": "defaults", "namespace": "a"}})
    saved_class("team", onLeave="remove")
    assert exceptions_in("a") == ["spec.limits"]
    services.delete_class(stored=NamespaceClass.objects.get(), user="ann")
    assert names_in("a") == {("LimitRange", "defaults")}


def test_a_field_that_a_new_version_drops_goes_and_that_of_others_stays() -> None:
    saved_class("team", policies=[quota(pods="10", secrets="3")])
    factories.namespace("a")
    wider = quota(pods="10", secrets="3", configmaps="4")
    factories.apply({**wider, "metadata": {"name": "amounts", "namespace": "a"}})
    saved_class("team", policies=[quota(pods="10")], version=1)
    assert hard_of("a") == {"pods": "10", "configmaps": "4"}


def test_a_version_is_counted_and_kept_and_an_unchanged_class_has_none() -> None:
    first = saved_class("team")
    assert first.changed
    assert not saved_class("team", version=1).changed
    assert saved_class("team", onLeave="remove", version=1).instance.version == 2
    services.delete_class(stored=NamespaceClass.objects.get(), user="ann")
    kept = NamespaceClassVersion.objects.order_by("number").values_list("number", "manifest")
    assert [(number, manifest is None) for number, manifest in kept] == [
        (1, False), (2, False), (3, True),
    ]  # fmt: skip
    assert saved_class("team").instance.version == 4


def test_a_stale_version_is_refused() -> None:
    saved_class("team")
    with pytest.raises(services.StaleRevisionError):
        saved_class("team", onLeave="remove", version=0)


def test_clusters_are_named_by_pattern() -> None:
    factories.cluster("dev-1")
    saved_class("team", clusters=["prod*"])
    for cluster in ("prod-1", "dev-1"):
        factories.namespace("a", in_cluster=cluster)
    assert names_in("a", "prod-1")
    assert not names_in("a", "dev-1")


def test_a_version_reaches_the_namespaces_of_all_clusters() -> None:
    for cluster in ("one", "two"):
        factories.namespace("a", in_cluster=cluster)
    given = saved_class("team").given
    assert (given.made, given.changed) == (4, 0)
    again = saved_class("team", policies=[limits("300m"), quota()], version=1).given
    assert (again.made, again.changed) == (0, 2)
    numbers = snapshot.refresh().clusters
    for cluster in ("one", "two"):
        [made] = numbers[cluster].policy_set("a").limit_ranges
        assert str(made.items[0].default["cpu"]) == "300m"


@pytest.mark.parametrize("name", ["kube-system", "gatehouse"])
def test_system_namespaces_must_be_named(name: str) -> None:
    saved_class("all")
    saved_class("these", names=[name], policies=[quota(name="named")])
    factories.namespace(name)
    assert names_in(name) == {("ResourceQuota", "named")}


def test_a_namespace_that_is_being_deleted_gets_nothing() -> None:
    saved_class("team")
    ending = Namespace(cluster=factories.cluster(), name="a", phase="Terminating")
    services.save_namespace(namespace=ending, user="ann")
    assert names_in("a") == set()


def test_many_namespaces_that_leave_at_once_wait_for_a_person() -> None:
    saved_class("team", labels={"tier": "x"}, onLeave="remove", policies=[limits("100m")])
    cluster = factories.cluster()
    manifests: list[dict[str, Any]] = [
        {"kind": "Namespace", "metadata": {"name": f"n{number}", "labels": {"tier": "x"}}}
        for number in range(20)
    ]
    services.create_many(cluster=cluster, manifests=manifests, user="cluster:prod")
    for number in range(20):
        relabel(f"n{number}", {})
    assert LimitRange.objects.count() == 10
    [stored] = NamespaceClass.objects.all()
    assert ClassMember.objects.filter(has_left=True).count() == 10
    assert services.held_deletions(stored) == 10
    with pytest.raises(ValidationError):
        services.confirm_leaving(stored=stored, user="ann", count=9)
    services.confirm_leaving(stored=stored, user="ann", count=10)
    assert LimitRange.objects.count() == 0
    assert not ClassMember.objects.exists()


def test_a_version_that_deletes_much_needs_the_number() -> None:
    saved_class("team", onLeave="remove", policies=[limits("100m")])
    for number in range(12):
        factories.namespace(f"n{number}")
    with pytest.raises(ValidationError) as refused:
        saved_class("team", names=["n1"], onLeave="remove", version=1, policies=[limits("100m")])
    assert refused.value.code == services.BRAKED
    assert NamespaceClass.objects.get().version == 1
    assert LimitRange.objects.count() == 12
    given = saved_class(
        "team", names=["n1"], onLeave="remove", version=1, policies=[limits("100m")], confirmed=11
    ).given
    assert given.removed == 11


def test_a_preview_says_what_a_version_would_do_and_stores_nothing() -> None:
    saved_class("team", names=["team-*"])
    factories.namespace("team-a")
    factories.namespace("web")
    manifest = class_manifest("team", policies=[limits("300m"), quota(name="other")])
    preview = services.preview_class(manifest)
    assert preview.namespaces == {"prod": ("team-a", "web")}
    assert {(each.action, each.key, each.fields) for each in preview.effects} == {
        ("change", ("LimitRange", "team-a", "defaults"), ("spec.limits",)),
        ("make", ("ResourceQuota", "team-a", "other"), ()),
        ("make", ("ResourceQuota", "web", "other"), ()),
        ("make", ("LimitRange", "web", "defaults"), ()),
    }
    assert NamespaceClass.objects.get().version == 1
    assert names_in("web") == set()
