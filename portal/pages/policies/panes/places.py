"""PolicyPlaces of a draft: the namespaces that it is saved in, by name or by a label selector.

A selector is expanded once, when the draft is saved; selectors that stay are namespace classes.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from engine.selector import SelectorError, parse_selector
from policies import roles, services
from policies.manifests import diff_in_words
from policies.models import Namespace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from policies.drafts.draft import PolicyPlace

MOST: Final = 200
"""Namespaces of one save: more belong to a namespace class."""
LONGEST: Final = 2000
BY_NAMES: Final = "names"
BY_LABELS: Final = "labels"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPlace:
    """Another namespace of the draft: what saving would do to the policy of this name there."""

    namespace: str
    revision: int
    words: Sequence[str]

    @property
    def is_new(self) -> bool:
        """Whether there is no such policy yet."""
        return not self.revision


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPlaces:
    """The draft's own namespace, and the others that were asked for; ``problems`` say why not."""

    own: str
    by: str = BY_NAMES
    others: tuple[str, ...] = ()
    where: str = ""
    problems: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All namespaces; empty for what belongs to a whole cluster."""
        return (self.own, *self.others) if self.own else ()

    @property
    def is_many(self) -> bool:
        """Whether there are several."""
        return bool(self.others)


def no_others(place: PolicyPlace) -> PolicyPlaces:
    """The draft's own namespace alone."""
    return PolicyPlaces(own=place.namespace_name)


def read_places(place: PolicyPlace, data: QueryDict, user: User) -> PolicyPlaces:
    """The namespaces that were sent; names and a selector do not add up. Two queries at most."""
    if place.namespace is None:
        return no_others(place)
    own = place.namespace_name
    writable = _writable(place, user)
    offered = tuple(name for name in writable if name != own)
    by = BY_LABELS if data.get("by") == BY_LABELS else BY_NAMES
    where = data.get("where", "")[:LONGEST].strip()
    found = PolicyPlaces(own=own, by=by, where=where, offered=offered)
    if by == BY_LABELS:
        return _matched(found, writable)
    removed = data.get("do", "").removeprefix("unplace:")
    typed = data.get("place", "")[:LONGEST].replace(",", " ").split()
    names = dict.fromkeys([*data.getlist("also"), *typed])
    wanted = [name for name in names if name not in ("", own, removed)][: MOST + 1]
    return _named(found, wanted)


def _named(found: PolicyPlaces, wanted: Sequence[str]) -> PolicyPlaces:
    unknown = [name for name in wanted if name not in found.offered]
    problems = [_unknown(name, found.offered) for name in unknown]
    others = tuple(name for name in wanted if name in found.offered)
    return _bounded(replace(found, others=others, problems=tuple(problems)))


def _unknown(name: str, offered: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, offered, n=1)
    guess = f": did you mean {near[0]}?" if near else ""
    return f"{name} is no namespace of this cluster that you may write in{guess}"


def _matched(found: PolicyPlaces, writable: Mapping[str, Mapping[str, str]]) -> PolicyPlaces:
    if not found.where:
        return found
    try:
        selector = parse_selector(found.where)
    except SelectorError as error:
        return replace(found, problems=(str(error),))
    others = tuple(
        name for name in found.offered if selector.matches({_NAME_LABEL: name, **writable[name]})
    )
    return _bounded(replace(found, others=others))


def _bounded(found: PolicyPlaces) -> PolicyPlaces:
    if len(found.others) < MOST:
        return found
    problem = f"more than {MOST} namespaces: write a namespace class instead"
    return replace(found, others=found.others[: MOST - 1], problems=(*found.problems, problem))


def _writable(place: PolicyPlace, user: User) -> dict[str, dict[str, str]]:
    """The namespaces of the cluster in which the person may write the kind, with their labels."""
    cluster = place.cluster.name
    namespaces = roles.visible(
        Namespace.objects.filter(cluster=place.cluster).order_by("name"),
        user,
        cluster="cluster__name",
        namespace="name",
    )
    permission = roles.writing(place.kind.name)
    # Whoever may write everywhere in the cluster is asked once, and not for each namespace.
    may_all = roles.may(user, permission, cluster=cluster)
    return {
        name: labels
        for name, labels in namespaces.values_list("name", "labels")
        if may_all or roles.may(user, permission, cluster=cluster, namespace=name)
    }


def other_places(
    place: PolicyPlace, places: PolicyPlaces, manifest: Mapping[str, Any] | None
) -> list[OtherPlace]:
    """What saving the draft would do in each other namespace; two queries for a kind."""
    metadata = (manifest or {}).get("metadata") or {}
    name = str(metadata.get("name") or "")
    if manifest is None or not places.others or not name:
        return []
    model = services.KINDS[place.kind.name]
    stored = {
        policy.namespace.name: policy
        for policy in model.objects.filter(
            namespace__cluster=place.cluster, namespace__name__in=places.others, name=name
        )
        .select_related("namespace")
        .prefetch_related(*model.row_sets)
    }
    found = []
    for namespace in places.others:
        policy = stored.get(namespace)
        after = {**manifest, "metadata": {**metadata, "namespace": namespace}}
        words = diff_in_words.changes(policy.to_manifest(), after) if policy else []
        found.append(
            OtherPlace(namespace=namespace, revision=policy.revision if policy else 0, words=words)
        )
    return found
