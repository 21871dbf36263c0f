"""``save_class``, ``delete_class``, their previews: a version given to all namespaces at once."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from engine.errors import DecodeError
from engine.namespace_class import (
    OnLeave,
    decode_namespace_class,
    encode_namespace_class,
    validate_namespace_class,
)
from policies.managed_fields import changed_fields
from policies.models import (
    ClassMember,
    ClassPolicy,
    Cluster,
    Namespace,
    NamespaceClass,
    NamespaceClassVersion,
    QuotaUsage,
)
from policies.object_rules import text_errors
from policies.services.classes.carry_out import Given, give_classes, is_braked
from policies.services.classes.plan import matching, plan_namespaces
from policies.services.write import StaleRevisionError, policy_write
from policies.validators import PlacedError, as_validation_error, decode_error_as_field_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from policies.services.classes.plan import ClassPlan
    from policies.services.write import Key

BRAKED = "deletions_need_confirmation"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedClass:
    """The result of a write: the class, whether it has a new version, and what that did."""

    instance: NamespaceClass
    changed: bool
    given: Given = field(default_factory=Given)


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


def save_class(
    *,
    manifest: Any,
    user: str,
    reason: str = "",
    expected_version: int | None = None,
    confirmed: int = 0,
) -> SavedClass:
    """Store a class and give it to all its namespaces, in one transaction.

    ``expected_version`` is that of the last one read (0: none yet); ``confirmed`` the number of
    deletions that a person agreed to, where they are many. Raises ``ValidationError`` and
    ``StaleRevisionError``.
    """
    checked = read_class(manifest)
    name = checked["metadata"]["name"]
    with _all_written():
        stored = NamespaceClass.objects.filter(name=name).first()
        _require_fresh(stored, expected_version)
        if stored is not None and stored.manifest == checked:
            return SavedClass(instance=stored, changed=False)
        instance = stored or NamespaceClass(name=name)
        instance.version = _last_version(name) + 1
        instance.read_manifest(checked)
        instance.save()
        NamespaceClassVersion.objects.create(
            name=name, number=instance.version, user=user, reason=reason, manifest=checked
        )
        given = _give_everywhere(instance, user=user, reason=reason, confirmed=confirmed)
    return SavedClass(instance=instance, changed=True, given=given)


def delete_class(
    *,
    stored: NamespaceClass,
    user: str,
    reason: str = "",
    expected_version: int | None = None,
    confirmed: int = 0,
) -> Given:
    """Delete a class; all its namespaces leave it. Raises as ``save_class`` does."""
    with _all_written():
        fresh = NamespaceClass.objects.filter(pk=stored.pk).first()
        _require_fresh(fresh, expected_version)
        if fresh is None:
            return Given()
        fresh.manifest = _covering_nothing(fresh.manifest)
        given = _give_everywhere(fresh, user=user, reason=reason, confirmed=confirmed)
        number = _last_version(fresh.name) + 1
        NamespaceClassVersion.objects.create(
            name=fresh.name, number=number, user=user, reason=reason, manifest=None
        )
        NamespaceClass.objects.filter(pk=fresh.pk).delete()
    return given


def confirm_leaving(*, stored: NamespaceClass, user: str, count: int) -> Given:
    """Delete what was held when namespaces left; ``count`` is the number that a person saw."""
    with _all_written():
        _require_confirmed(stored, _held(stored), count, is_exact=True)
        left = ClassMember.objects.filter(namespace_class=stored, has_left=True)
        places = Namespace.objects.filter(class_members__in=left).order_by("id")
        total = Given()
        for cluster in Cluster.objects.filter(namespaces__in=places).distinct().order_by("id"):
            total = _sum(
                total,
                give_classes(cluster, list(places.filter(cluster=cluster)), user=user,
                             confirmed=True),
            )  # fmt: skip
    return total


def held_deletions(stored: NamespaceClass) -> int:
    """How many deletions wait for a person."""
    return _held(stored) if stored.members.filter(has_left=True).exists() else 0


def _held(stored: NamespaceClass) -> int:
    left = stored.members.filter(has_left=True).values("namespace")
    return ClassPolicy.objects.filter(
        namespace_class=stored, namespace__in=left, was_made=True, exception_count=0
    ).count()


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
    stored.manifest = _covering_nothing(stored.manifest)
    return _previewed(stored)


def _previewed(candidate: NamespaceClass) -> ClassPreview:
    others = [each for each in NamespaceClass.objects.all() if each.name != candidate.name]
    classes = [*others, candidate]
    value = candidate.value
    namespaces: dict[str, tuple[str, ...]] = {}
    effects: list[PolicyEffect] = []
    problems: list[str] = []
    exceptions = removals = 0
    for cluster, places in _concerned(candidate):
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
        exceptions += sum(
            row.exception_count
            for row in planned.rows
            if row.namespace_class.name == candidate.name
        )
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


def _covering_nothing(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The class as it is when its last namespace leaves: for no cluster."""
    return {**manifest, "spec": {**manifest["spec"], "clusters": ["-"]}}


def _concerned(stored: NamespaceClass) -> Iterator[tuple[Cluster, list[Namespace]]]:
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
        concerned = [
            each
            for each in places
            if each.pk in members or matching([(stored, value)], cluster, each)
        ]
        if concerned:
            yield cluster, concerned


def _give_everywhere(stored: NamespaceClass, *, user: str, reason: str, confirmed: int) -> Given:
    concerned = list(_concerned(stored))
    others = [each for each in NamespaceClass.objects.all() if each.pk != stored.pk]
    classes = [*others, stored]
    removals = sum(
        len(plan_namespaces(cluster, places, classes).removals.get(stored.pk, ()))
        for cluster, places in concerned
        if _may_remove(stored, places)
    )
    _require_confirmed(stored, removals, confirmed)
    why = f"class {stored.name}, version {stored.version}" + (f": {reason}" if reason else "")
    total = Given()
    for cluster, places in concerned:
        given = give_classes(
            cluster, places, user=user, reason=why, classes=classes, confirmed=True
        )
        total = _sum(total, given)
    return total


def _may_remove(stored: NamespaceClass, places: Sequence[Namespace]) -> bool:
    """Whether a plan could have removals at all: most versions need not be planned twice."""
    if stored.value.on_leave is not OnLeave.REMOVE:
        return False
    listed = {(each["kind"], each["metadata"]["name"]) for each in stored.value.policies}
    rows = ClassPolicy.objects.filter(namespace_class=stored)
    if set(rows.values_list("kind", "name").distinct().order_by()) - listed:
        return True
    members = set(stored.members.values_list("namespace_id", flat=True))
    by_cluster = {each.pk: each for each in places}
    value = stored.value
    return any(
        not matching([(stored, value)], by_cluster[pk].cluster, by_cluster[pk])
        for pk in members & by_cluster.keys()
    )


def _require_confirmed(
    stored: NamespaceClass, deletions: int, confirmed: int, *, is_exact: bool = False
) -> None:
    """Raise ``ValidationError`` unless a person has agreed to that many deletions."""
    if deletions == confirmed or (not is_exact and not is_braked(stored, deletions)):
        return
    message = (
        f"{deletions} policies would be deleted, which is many: confirm the number {deletions}"
        if deletions
        else "no deletions wait for you: read it again"
    )
    raise ValidationError(message, code=BRAKED)


def _sum(one: Given, other: Given) -> Given:
    return Given(
        made=one.made + other.made,
        changed=one.changed + other.changed,
        removed=one.removed + other.removed,
        held=one.held + other.held,
    )


def _last_version(name: str) -> int:
    last = NamespaceClassVersion.objects.filter(name=name).aggregate(last=Max("number"))["last"]
    return last or 0


def _require_fresh(stored: NamespaceClass | None, expected: int | None) -> None:
    found = stored.version if stored else 0
    if expected is not None and expected != found:
        raise StaleRevisionError(expected=expected, found=found)


@contextmanager
def _all_written() -> Iterator[None]:
    """Write all clusters in one transaction.

    From the last cluster to the first, so that their rows are written from the first to the last,
    in the order in which decisions lock them; and all used amounts before, for the same reason.
    """
    with transaction.atomic(), ExitStack() as writes:
        clusters = list(Cluster.objects.order_by("-id"))
        for cluster in clusters:
            writes.enter_context(policy_write(cluster))
        if len(clusters) > 1:
            of_classes = ClassPolicy.objects.filter(kind="ResourceQuota").values("namespace__name")
            used = QuotaUsage.objects.filter(namespace__in=of_classes).order_by("quota_id")
            list(used.select_for_update(no_key=True).values_list("quota_id"))
        yield
