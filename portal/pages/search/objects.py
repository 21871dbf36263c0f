"""Finders of the palette: clusters, namespaces, policies, people and decisions by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from policies import roles
from policies.drafts.kinds import BY_NAME
from policies.models import (
    Cluster,
    LimitRange,
    MetadataPolicy,
    Namespace,
    PriorityClass,
    ResourceQuota,
)
from portal.pages.access.role_form import names_like
from portal.pages.decisions.explorer import visible_decisions
from portal.pages.search.entries import PaletteEntry, PaletteGroup, decisions_of, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

_POLICY_MODELS: Final = (LimitRange, MetadataPolicy, ResourceQuota)


def find_objects(words: str, user: Any, most: int) -> Iterator[PaletteGroup]:
    """Groups of what has the words in its name, as far as the user sees it."""
    # Decisions first: their ids are found as a whole, so there is at most one.
    decisions = [
        PaletteEntry(
            event.id,
            event.get_verdict_display().lower(),
            reverse("decision-detail", args=[event.pk]),
        )
        for event in visible_decisions(user).with_id(words)
    ]
    yield PaletteGroup("Decisions", "list", decisions, len(decisions))
    yield PaletteGroup("Clusters", "stack-2", *_clusters(words, user, most))
    yield PaletteGroup("Namespaces", "box", *_namespaces(words, user, most))
    for model in _POLICY_MODELS:
        label = f"{model.__name__.removesuffix('y')}{'ies' if model is MetadataPolicy else 's'}"
        yield PaletteGroup(label, "file-text", *_policies(model, words, user, most))
    yield PaletteGroup("PriorityClasses", "file-text", *_priorities(words, user, most))
    if roles.may_somewhere(user, roles.GIVE_ROLES):
        names = names_like(words, user)[:most]
        people = [_person_entry(name) for name in names]
        yield PaletteGroup("People", "users", people, len(people))
        decisions = [decisions_of(name) for name in names]
        yield PaletteGroup("Decisions of people", "list", decisions, len(decisions))


def _clusters(words: str, user: Any, most: int) -> tuple[list[PaletteEntry], int]:
    seen = roles.visible(Cluster.objects.all(), user, cluster="name", whole=True)
    rows = seen.filter(name__icontains=words).order_by("name")
    return listed(rows, most, _cluster_entry)


def _cluster_entry(cluster: Cluster) -> PaletteEntry:
    return PaletteEntry(cluster.name, "cluster", reverse("cluster-detail", args=[cluster.name]))


def namespaces_like(words: str, user: Any) -> Any:
    """Namespaces with the words in their names; "cluster/name" narrows them to clusters."""
    cluster_name, _, name = words.rpartition("/")
    seen = roles.visible(Namespace.objects.all(), user, cluster="cluster__name", namespace="name")
    found = seen.filter(name__icontains=name, cluster__name__icontains=cluster_name)
    return found.select_related("cluster").order_by("name", "cluster__name")


def _namespaces(words: str, user: Any, most: int) -> tuple[list[PaletteEntry], int]:
    return listed(namespaces_like(words, user), most, _namespace_entry)


def _namespace_entry(namespace: Namespace) -> PaletteEntry:
    address = reverse("namespace", args=[namespace.cluster.name, namespace.name])
    return PaletteEntry(str(namespace), "namespace", address)


def _policies(model: Any, words: str, user: Any, most: int) -> tuple[list[PaletteEntry], int]:
    rows: Any = roles.visible(
        model.objects.filter(name__icontains=words),
        user,
        cluster="namespace__cluster__name",
        namespace="namespace__name",
    )
    return listed(
        rows.select_related("namespace__cluster").order_by("name", "pk"), most, policy_entry
    )


def policy_entry(policy: Any) -> PaletteEntry:
    """A policy; the editor also shows it to those who may not change it."""
    home = policy.namespace
    names = [home.cluster.name, home.name, BY_NAME[policy.kind].plural, policy.name]
    return PaletteEntry(f"{home}/{policy.name}", policy.kind, reverse("policy", args=names))


def _priorities(words: str, user: Any, most: int) -> tuple[list[PaletteEntry], int]:
    seen = roles.visible(PriorityClass.objects.all(), user, cluster="cluster__name")
    rows = seen.filter(name__icontains=words).select_related("cluster").order_by("name", "pk")
    return listed(rows, most, _priority_entry)


def _priority_entry(priority: PriorityClass) -> PaletteEntry:
    address = reverse("priority-class", args=[priority.cluster.name, priority.name])
    return PaletteEntry(priority.name, priority.kind, address)


def _person_entry(name: str) -> PaletteEntry:
    address = f"{reverse('people')}?{urlencode({'subject': name})}#give"
    return PaletteEntry(name, "person", address)
