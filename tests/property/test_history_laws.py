"""Laws of the past: at every instant it is what a portal that was stopped then showed.

``HISTORIES`` sets how many histories are played; each is fixed by its number.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.utils import timezone
from rest_framework.test import APIClient

from engine.resource_list import parse
from policies import history, services, snapshot
from policies.ledger.release import release
from policies.manifests import diff_in_words
from policies.models import (
    Charge,
    Cluster,
    LimitRange,
    MetadataPolicy,
    Namespace,
    NamespaceClass,
    PolicyRevision,
    PriorityClass,
    QuotaUsage,
    ResourceQuota,
    RoleBinding,
)
from tests import builders, charges, factories
from tests.namespace_classes import class_manifest, limits, quota

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

pytestmark = [pytest.mark.django_db, pytest.mark.no_cover]
STEPS = 25
CLUSTERS = ("prod", "test")
NAMESPACES = ("team", "shop", "db")
POLICIES = (LimitRange, MetadataPolicy, ResourceQuota)
WIDE = (Cluster, Namespace, PriorityClass)
HARD = ("pods", "requests.cpu", "limits.memory", "configmaps")
TICK = 0.003
"""Longer than what databases tell apart."""

Key = tuple[str, str, str, str]


class Shown(NamedTuple):
    """What the portal shows at one moment."""

    objects: dict[Key, tuple[int, dict[str, Any]]]
    classes: dict[str, tuple[int, dict[str, Any]]]
    used: dict[str, Any]
    roles: set[tuple[str, ...]]
    policy_sets: dict[tuple[str, str], Any]
    api: dict[str, Any]


MODELS_OF_LISTS: dict[str, Any] = {
    "clusters": Cluster,
    "namespaces": Namespace,
    "limitranges": LimitRange,
    "metadatapolicies": MetadataPolicy,
    "resourcequotas": ResourceQuota,
    "priorityclasses": PriorityClass,
    "namespaceclasses": NamespaceClass,
    "rolebindings": RoleBinding,
    "quotausage": ResourceQuota,
}
NOT_ON_RECORD = ("created", "updated", "exceptions", "heldDeletions")
"""Members that the past does not have, or to the millisecond alone."""


def answered(at: str = "") -> dict[str, Any]:
    """What the API answers, by list."""
    client = APIClient()
    client.force_authenticate(get_user_model().objects.get(username="root"))
    found: dict[str, Any] = {}
    for name in MODELS_OF_LISTS:
        answer = client.get(f"/api/v1/{name}/", {"limit": 500, **({"at": at} if at else {})})
        # Before the first entry of a record nothing can be told.
        found[name] = answer.json()["results"] if answer.status_code == 200 else answer.status_code
    return found


def comparable(shown: dict[str, Any], *, knows_usage: bool) -> dict[str, Any]:
    """Answers without what is on no record: numbers of objects that are gone, and milliseconds."""
    unknown = NOT_ON_RECORD if knows_usage else (*NOT_ON_RECORD, "status")
    numbers = {
        name: set(model.objects.values_list("pk", flat=True))
        for name, model in MODELS_OF_LISTS.items()
    }
    return {
        name: [
            {
                member: None if member == "id" and value not in numbers[name] else _exact(value)
                for member, value in each.items()
                if member not in unknown
            }
            for each in results
        ]
        for name, results in shown.items()
        if not isinstance(results, int)
    }


def _exact(value: Any) -> Any:
    """A quota's status with amounts in place of their texts."""
    has_amounts = isinstance(value, dict) and "used" in value
    return {**value, "used": parse(value["used"])} if has_amounts else value


def histories() -> Iterable[int]:
    return range(int(os.environ.get("HISTORIES", "8")))


def shown_now() -> Shown:
    stored = [each for model in (*POLICIES, *WIDE) for each in model.objects.all()]
    return Shown(
        objects={
            (each.owner.name, each.kind, each.namespace_name, each.name): (
                each.revision,
                each.to_manifest(),
            )
            for each in stored
        },
        classes={each.name: (each.version, each.manifest) for each in NamespaceClass.objects.all()},
        used={str(each.quota_uid): parse(each.used) for each in QuotaUsage.objects.all()},
        roles={
            (each.subject, each.role, each.cluster, each.namespace)
            for each in RoleBinding.objects.all()
        },
        policy_sets={
            (cluster, namespace): snapshot.load(cluster, namespace)
            for cluster in Cluster.objects.values_list("name", flat=True)
            for namespace in NAMESPACES
        },
        api=answered(),
    )


def shown_at(instant: dt.datetime) -> Shown:
    kinds = [model.kind for model in (*POLICIES, *WIDE)]
    writes = history.revisions_at(CLUSTERS, instant)
    found = history.objects_of(history.in_force(writes, kinds=kinds))
    clusters = [each.name for each in found if each.kind == "Cluster"]
    quotas = [each for each in found if each.kind == "ResourceQuota"]
    return Shown(
        objects={
            (each.cluster, each.kind, each.namespace, each.name): (each.number, dict(each.manifest))
            for each in found
        },
        classes={
            each.name: (each.number, each.manifest) for each in history.class_versions_at(instant)
        },
        used={uid: parse(used) for uid, used in history.used_of(quotas, instant).items()},
        roles={
            (each.user or f"group {each.group}", each.role, each.cluster, each.namespace)
            for each in history.role_bindings_at(instant)
        },
        policy_sets={
            (cluster, namespace): history.load_at(cluster, namespace, instant)
            for cluster in clusters
            for namespace in NAMESPACES
        },
        api=answered(history.format_instant(instant)),
    )


class Writer:
    """Does one thing at a time that changes what the portal shows."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - to be repeatable
        self.author = get_user_model().objects.create_superuser("root")
        self.subjects: list[dict[str, Any]] = [
            {"user": get_user_model().objects.create_user("ada")},
            {"group": Group.objects.create(name="staff")},
        ]
        self.pods = 0

    def step(self) -> None:
        acts = (
            *(self.save_range, self.save_metadata, self.save_quota, self.save_quota),
            *(self.delete_policy, self.restore, self.label_namespace, self.delete_namespace),
            *(self.limited, self.priority_class, self.settings, self.save_class, self.many),
            *(self.bind, self.unbind, self.charge, self.charge, self.charge, self.release),
            *(self.opening, self.recount, self.delete_cluster),
        )
        # A write that is refused changes nothing.
        with contextlib.suppress(ValidationError):
            self.dice.choice(acts)()

    def _place(self) -> tuple[str, str]:
        return self.dice.choice(CLUSTERS), self.dice.choice(NAMESPACES)

    def _apply(self, kind: str, spec: dict[str, Any], **metadata: Any) -> None:
        cluster, namespace = self._place()
        name = self.dice.choice("ab")
        document = factories.manifest(kind, spec, name=name, namespace=namespace, **metadata)
        factories.apply(document, in_cluster=cluster)

    def save_range(self) -> None:
        item = {"type": "Container", "default": {"cpu": f"{self.dice.randint(1, 9)}"}}
        self._apply("LimitRange", {"limits": [item]}, labels={"tier": self.dice.choice("xy")})

    def save_metadata(self) -> None:
        rule = {"policyPredicate": {}, "policyAction": {"reject": self.dice.random() < 0.5}}
        self._apply("MetadataPolicy", {"rules": [rule]})

    def save_quota(self) -> None:
        names = self.dice.sample(HARD, self.dice.randint(1, 3))
        self._apply("ResourceQuota", {"hard": {n: str(self.dice.randint(1, 9)) for n in names}})

    def opening(self) -> None:
        cluster, namespace = self._place()
        hard = {"pods": "20"}
        document = factories.manifest(
            "ResourceQuota", {"hard": hard}, name="opened", namespace=namespace
        )
        document["status"] = {"hard": hard, "used": {"pods": str(self.dice.randint(0, 3))}}
        factories.apply(document, in_cluster=cluster)

    def delete_policy(self) -> None:
        stored = list(self.dice.choice(POLICIES).objects.all())
        if stored:
            services.delete_policy(policy=self.dice.choice(stored), user="root")

    def restore(self) -> None:
        kinds = [model.kind for model in POLICIES]
        revisions = list(PolicyRevision.objects.filter(kind__in=kinds).exclude(after=None))
        if revisions:
            revision = self.dice.choice(revisions)
            if Namespace.objects.filter(
                cluster__name=revision.cluster, name=revision.namespace
            ).exists():
                services.restore_revision(revision=revision, user="root")

    def label_namespace(self) -> None:
        cluster, name = self._place()
        namespace = factories.namespace(name, in_cluster=cluster)
        namespace.labels = {"team": self.dice.choice("xyz")}
        services.save_namespace(namespace=namespace, user="root")

    def delete_namespace(self) -> None:
        stored = list(Namespace.objects.all())
        if stored and self.dice.random() < 0.5:
            services.delete_namespace(namespace=self.dice.choice(stored), user="root")

    def delete_cluster(self) -> None:
        stored = list(Cluster.objects.all())
        if stored and self.dice.random() < 0.6:
            services.delete_cluster(cluster=self.dice.choice(stored), user="root")

    def limited(self) -> None:
        entries = [{"resource": "pods", "matchContains": [self.dice.choice(HARD)]}]
        factories.limited_resources(*entries[: self.dice.randint(0, 1)])

    def priority_class(self) -> None:
        factories.priority_class(self.dice.choice("ab"), self.dice.randint(1, 9))

    def settings(self) -> None:
        cluster = factories.cluster(self.dice.choice(CLUSTERS))
        cluster.kubernetes_version = self.dice.choice(["", "1.34"])
        services.save_cluster(cluster=cluster, user="root")

    def save_class(self) -> None:
        labels = {"team": self.dice.choice("xyz")}
        policies = [limits(f"{self.dice.randint(1, 9)}"), quota(pods="7")]
        manifest = class_manifest(self.dice.choice("cd"), labels=labels, policies=policies)
        services.save_class(manifest=manifest, user="root", confirmed=0)

    def many(self) -> None:
        """Several writes in one transaction, so that their rows share a number."""
        with services.policy_write(factories.cluster("prod")):
            for _ in range(3):
                factories.namespace(self.dice.choice(NAMESPACES))
                item = {"type": "Container", "max": {"cpu": f"{self.dice.randint(1, 9)}"}}
                factories.limit_range(item, name="many")
                time.sleep(TICK / 3)

    def bind(self) -> None:
        cluster, namespace = self._place()
        binding = RoleBinding(
            **self.dice.choice(self.subjects),
            role=self.dice.choice(["viewer", "editor"]),
            cluster=cluster,
            namespace=self.dice.choice(["", namespace]),
        )
        services.bind_role(binding=binding, author=self.author)

    def unbind(self) -> None:
        stored = list(RoleBinding.objects.all())
        if stored:
            services.unbind_role(binding=self.dice.choice(stored), author=self.author)

    def charge(self) -> None:
        cluster, namespace = self._place()
        if not Cluster.objects.filter(name=cluster).exists():
            return
        self.pods += 1
        container = builders.container(requests={"cpu": "1"}, limits={"memory": "1", "cpu": "1"})
        pod = builders.pod(container, name=f"p{self.pods}", uid=f"u{self.pods}")
        charges.admit(builders.request(pod, namespace=namespace), in_cluster=cluster)

    def release(self) -> None:
        open_charges = list(Charge.objects.exclude(state="released").select_related("cluster"))
        if open_charges:
            gone = self.dice.choice(open_charges)
            release(gone.cluster.name, resource=gone.resource, uid=gone.object_uid)

    def recount(self) -> None:
        stored = QuotaUsage.objects.exclude(used={}).first()
        if stored is not None:
            stored.used = dict.fromkeys(stored.used, "5")
            # As after a fault: the page shows it until somebody recounts.
            stored.save()
            services.recount_quotas(cluster=stored.cluster, repair=True, user="root")


@pytest.mark.sampled
@pytest.mark.parametrize("seed", histories())
def test_every_instant_is_what_a_portal_stopped_then_shows(seed: int) -> None:
    writer, kept = Writer(seed), []
    for _ in range(STEPS):
        writer.step()
        time.sleep(TICK)
        kept.append((timezone.now(), shown_now()))
        time.sleep(TICK)
    assert any(shown.objects for _, shown in kept)
    for number, (instant, shown) in enumerate(kept):
        past = shown_at(instant)
        knows = past.api["quotausage"] != 410
        served = comparable(shown.api, knows_usage=knows)
        for name, results in comparable(past.api, knows_usage=knows).items():
            assert results == served[name], (number, name)
        for field in set(Shown._fields) - {"api"}:
            assert getattr(past, field) == getattr(shown, field), (number, field)


def _told(compared: history.Comparison) -> list[tuple[Any, ...]]:
    """What a comparison shows: amounts as such, since their texts may differ."""
    return [
        (
            *(each.cluster, each.namespace, each.kind, each.name),
            tuple(each.amounts if each.kind == history.USAGE_KIND else each.words),
            *(_exact(side) for side in (each.before, each.after)),
            each.written.id if each.written else None,
        )
        for each in compared.differences
    ]


def _objects_apart(states: list[dict[Key, history.PastObject]]) -> Iterable[tuple[Any, ...]]:
    """The objects that differ, from both states as a whole."""
    for cluster, kind, namespace, name in states[0].keys() | states[1].keys():
        sides = [each.get((cluster, kind, namespace, name)) for each in states]
        before, after = (each.manifest if each else None for each in sides)
        words = diff_in_words.changes(before, after)
        if written := words and (sides[1] or sides[0]):
            yield cluster, namespace, kind, name, tuple(words), before, after, written.id


def _usage_apart(
    states: list[dict[Key, history.PastObject]], instants: tuple[dt.datetime, dt.datetime]
) -> Iterable[tuple[Any, ...]]:
    """The quotas that used other amounts, from all that each used at both instants."""
    used = [history.used_of(state.values(), at) for state, at in zip(states, instants, strict=True)]
    for key in states[0].keys() & states[1].keys():
        uid = states[0][key].uid
        if key[1] != "ResourceQuota" or states[1][key].uid != uid:
            continue
        before, after = (parse(each[uid]) for each in used)
        moved = [
            name for name in sorted(before.keys() & after.keys()) if before[name] != after[name]
        ]
        if moved:
            amounts = tuple(f"used[{name}]" for name in moved)
            place = (key[0], key[2], history.USAGE_KIND, key[3])
            yield *place, amounts, {"used": before}, {"used": after}, None


@pytest.mark.sampled
@pytest.mark.parametrize("seed", histories())
def test_two_instants_differ_in_what_each_of_them_shows(seed: int) -> None:
    writer, moments = Writer(seed), [timezone.now()]
    for _ in range(2 * STEPS):
        writer.step()
        time.sleep(TICK)
        moments.append(timezone.now())
        time.sleep(TICK)
    clusters, known = history.clusters_seen(writer.author), history.horizon()
    is_told = False
    for _ in range(2 * STEPS):
        begin, end = instants = (writer.dice.choice(moments), writer.dice.choice(moments))
        states: list[dict[Key, history.PastObject]] = []
        for instant in instants:
            writes = history.revisions_at(clusters, instant)
            rows = history.in_force(writes, kinds=history.COMPARED_KINDS)
            states.append(
                {(e.cluster, e.kind, e.namespace, e.name): e for e in history.objects_of(rows)}
            )
        between = history.TwoInstants(begin=begin, end=end)
        compared = history.compare_seen(writer.author, between, clusters=clusters, known=known)
        expected = list(_objects_apart(states))
        if compared.knows_usage:
            expected += _usage_apart(states, instants)
        told = [each for each in _told(compared) if each[2] != history.ROLE_KIND]
        assert told == sorted(expected, key=lambda each: each[:4]), (begin, end)
        is_told = is_told or bool(told)
    assert is_told
