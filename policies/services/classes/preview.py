"""``preview_class``: what saving or deleting a class would do; ``read_class`` checks a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import DecodeError
from engine.namespace_class import (
    decode_namespace_class,
    encode_namespace_class,
    validate_namespace_class,
)
from policies.managed_fields import changed_fields
from policies.models import ClassMember, Cluster, Namespace, NamespaceClass
from policies.object_rules import text_errors
from policies.services.classes.carry_out import is_braked
from policies.services.classes.plan import matching, plan_namespaces
from policies.validators import PlacedError, as_validation_error, decode_error_as_field_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policies.services.classes.plan import ClassPlan
    from policies.services.write import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEffect:
    """What a version would do with one policy; ``fields`` are those that change."""

    cluster: str
    key: Key
    action: str
    fields: tuple[str, ...] = ()
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPreview:
    """What saving a class would do.

    ``namespaces`` are those that it would match, by cluster; ``exceptions`` the fields that stay
    as somebody set them; ``needs_confirmation``: the deletions are so many.
    """

    manifest: Mapping[str, Any] | None
    version: int
    namespaces: Mapping[str, tuple[str, ...]]
    effects: tuple[PolicyEffect, ...] = ()
    problems: tuple[str, ...] = ()
    exceptions: int = 0
    needs_confirmation: bool = False

    def having(self, action: str) -> list[PolicyEffect]:
        """The effects of one action: make, change or remove."""
        return [each for each in self.effects if each.action == action]


def read_class(manifest: Any) -> dict[str, Any]:
    """Check a class's manifest, and return it as it is stored; raises ``ValidationError``."""
    try:
        value = decode_namespace_class(manifest)
        errors = [*text_errors(manifest), *validate_namespace_class(value)]
    except DecodeError as error:
        errors = [decode_error_as_field_error(error)]
    if errors:
        raise as_validation_error(
            PlacedError(
                each.message, code=each.type.cause, path=each.field, place=("", None, "manifest")
            )
            for each in errors
        )
    return encode_namespace_class(value)


def matched_namespaces(manifest: Mapping[str, Any]) -> dict[str, list[str]]:
    """The namespaces that a checked class matches now, by cluster; one query and no plan."""
    value = decode_namespace_class(manifest)
    rows = Namespace.objects.order_by("cluster__name", "name").values_list(
        "cluster__name", "cluster__portal_namespace", "name", "labels"
    )
    found: dict[str, list[str]] = {}
    for cluster, reserved, name, labels in rows.iterator():
        if value.covers(cluster) and value.selector.matches(name, labels, reserved=reserved):
            found.setdefault(cluster, []).append(name)
    return found


def preview_class(manifest: Any) -> ClassPreview:
    """What saving this manifest would do; stores nothing. Raises ``ValidationError``."""
    checked = read_class(manifest)
    name = checked["metadata"]["name"]
    stored = NamespaceClass.objects.filter(name=name).first()
    candidate = stored or NamespaceClass(pk=0, name=name, version=0)
    candidate.read_manifest(checked)
    candidate.version += 1
    return _previewed(candidate)


def preview_deletion(stored: NamespaceClass) -> ClassPreview:
    """What deleting a class would do; stores nothing."""
    stored.manifest = covering_nothing(stored.manifest)
    return _previewed(stored)


def _previewed(candidate: NamespaceClass) -> ClassPreview:
    others = [each for each in NamespaceClass.objects.all() if each.name != candidate.name]
    classes = [*others, candidate]
    value = candidate.value
    namespaces: dict[str, tuple[str, ...]] = {}
    effects: list[PolicyEffect] = []
    problems: list[str] = []
    exceptions = removals = 0
    for cluster, places in concerned(candidate):
        planned = plan_namespaces(cluster, places, classes)
        matched = [each.name for each in places if matching([(candidate, value)], cluster, each)]
        if matched:
            namespaces[cluster.name] = tuple(matched)
        effects += _effects(cluster, planned)
        members = [each for each in planned.members if each.namespace_class_id == candidate.pk]
        problems += [
            f"{cluster.name}/{member.namespace.name}: {text}"
            for member in members
            for text in member.problems
        ]
        exceptions += planned.exceptions[candidate.name]
        removals += len(planned.removals.get(candidate.pk, ()))
    return ClassPreview(
        manifest=candidate.manifest,
        version=candidate.version,
        namespaces=namespaces,
        effects=tuple(effects),
        problems=tuple(problems),
        exceptions=exceptions,
        needs_confirmation=bool(removals) and is_braked(candidate, removals),
    )


def _effects(cluster: Cluster, planned: ClassPlan) -> Iterator[PolicyEffect]:
    for news in planned.news.values():
        for new in news:
            yield PolicyEffect(cluster=cluster.name, key=new.key, action="make", after=new.after)
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for changes in planned.changes.values():
        for change in changes:
            text = (
                change.key[0],
                change.key[2],
                repr(_spec(change.before)),
                repr(_spec(change.after)),
            )
            if text not in seen:
                seen[text] = tuple(sorted(changed_fields(change.before, change.after)))
            yield PolicyEffect(
                cluster=cluster.name,
                key=change.key,
                action="change",
                fields=seen[text],
                before=change.before,
                after=change.after,
            )
    for removals in planned.removals.values():
        for row, stored in removals:
            key = (row.kind, stored.namespace_name, row.name)
            before = stored.to_manifest()
            yield PolicyEffect(cluster=cluster.name, key=key, action="remove", before=before)


def _spec(manifest: Mapping[str, Any] | None) -> Any:
    shown = manifest or {}
    metadata = {name: v for name, v in (shown.get("metadata") or {}).items() if name != "namespace"}
    return (metadata, shown.get("spec"))


def covering_nothing(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The class as it is when its last namespace leaves: for no cluster."""
    return {**manifest, "spec": {**manifest["spec"], "clusters": ["-"]}}


def concerned(stored: NamespaceClass) -> Iterator[tuple[Cluster, list[Namespace]]]:
    """The namespaces that a class matches or has as members, by cluster."""
    value = stored.value
    members = set(
        ClassMember.objects.filter(namespace_class_id=stored.pk).values_list(
            "namespace_id", flat=True
        )
    )
    for cluster in Cluster.objects.order_by("id"):
        places = list(Namespace.objects.filter(cluster=cluster).order_by("id"))
        for each in places:
            each.cluster = cluster  # it would be fetched for each
        met = [
            each
            for each in places
            if each.pk in members or matching([(stored, value)], cluster, each)
        ]
        if met:
            yield cluster, met
