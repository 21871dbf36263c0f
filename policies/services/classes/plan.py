"""``plan_namespaces``: what classes give to namespaces and take from them; reads alone.

Namespaces whose policy has the same content and the same managers share one merge and one check:
a class of thousands of namespaces is judged a few times.
"""

from __future__ import annotations

import copy
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import ValidationError

from engine.namespace_class import OnLeave, filled_in, parameter_values
from policies.managed_fields import (
    CLASS,
    OBJECT,
    FieldManager,
    ManagedField,
    managers_from_json,
    merge_where_free,
)
from policies.models import ClassMember, ClassPolicy, Namespace, PolicyRevision
from policies.services.bulk_change import Change
from policies.services.bulk_create import New, checked
from policies.services.field_managers import managers_of
from policies.services.manifests import new_object, take_over
from policies.services.preview import stored_by_key
from policies.services.write import Action
from policies.validators import errors_by_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.namespace_class import NamespaceClass as EngineClass
    from policies.managed_fields import Managers
    from policies.models import Cluster, NamespaceClass, ObjectManagers
    from policies.services.write import Key


class WantedPolicy(NamedTuple):
    """What a class wants a policy to be: its manifest but for the namespace, shared by many."""

    stored_class: NamespaceClass
    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merged:
    """A policy after the class, without its namespace, and fields that stay as others want them.

    ``errors`` say why the result cannot be stored; then the policy stays as it is.
    """

    after: dict[str, Any]
    is_changed: bool
    left: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class ClassPlan:
    """What is to be stored in one cluster: policies by class, and who got what from which.

    ``exceptions`` counts the fields that stay as somebody set them, by class. ``rows_at`` and
    ``members_at`` are stored rows that only get another version.
    """

    news: dict[str, list[New]] = field(default_factory=lambda: defaultdict(list))
    changes: dict[str, list[Change]] = field(default_factory=lambda: defaultdict(list))
    removals: dict[int, list[tuple[ClassPolicy, Any]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    rows: list[ClassPolicy] = field(default_factory=list)
    rows_at: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    members_at: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    exceptions: Counter[str] = field(default_factory=Counter)
    released: list[ClassPolicy] = field(default_factory=list)
    members: list[ClassMember] = field(default_factory=list)
    leaving: list[ClassMember] = field(default_factory=list)


def matching(
    classes: Iterable[tuple[NamespaceClass, EngineClass]], cluster: Cluster, namespace: Namespace
) -> list[tuple[NamespaceClass, EngineClass]]:
    """The classes of a namespace, in the order of their names."""
    labels, reserved = namespace.labels, cluster.portal_namespace
    return [
        (stored, value)
        for stored, value in classes
        if value.covers(cluster.name)
        and value.selector.matches(namespace.name, labels, reserved=reserved)
    ]


def plan_namespaces(
    cluster: Cluster, namespaces: Sequence[Namespace], classes: Sequence[NamespaceClass]
) -> ClassPlan:
    """Plan what these classes, all that there are, do with these namespaces.

    The number of queries does not grow with the number of namespaces.
    """
    planner = _Planner(cluster, namespaces, classes)
    for namespace in namespaces:
        # Nothing can be created in a namespace that is being deleted, and all goes with it.
        if namespace.phase != Namespace.Phase.TERMINATING:
            planner.plan_one(namespace)
    return planner.plan


class _Planner:
    """The state of the namespaces, read at once, and the plan that grows from it."""

    def __init__(
        self, cluster: Cluster, namespaces: Sequence[Namespace], classes: Sequence[NamespaceClass]
    ) -> None:
        self.cluster = cluster
        self.plan = ClassPlan()
        ordered = sorted(classes, key=lambda each: each.name.encode())
        self._classes = [(each, each.value) for each in ordered]
        self._on_leave = {each.pk: value.on_leave for each, value in self._classes}
        self._offers: dict[tuple[object, ...], dict[str, Any]] = {}
        self._merges: dict[tuple[object, ...], _Merged] = {}
        # Not as a list of ids: a cluster may have thousands, and mostly all are asked for.
        of_these = {each.pk for each in namespaces}
        self._rows: dict[int, list[ClassPolicy]] = defaultdict(list)
        for row in ClassPolicy.objects.filter(namespace__cluster=cluster):
            if row.namespace_id in of_these:
                self._rows[row.namespace_id].append(row)
        self._members: dict[int, list[ClassMember]] = defaultdict(list)
        for member in ClassMember.objects.filter(namespace__cluster=cluster):
            if member.namespace_id in of_these:
                self._members[member.namespace_id].append(member)
        keys = [
            (policy["kind"], namespace.name, policy["metadata"]["name"])
            for namespace in namespaces
            for _, value in matching(self._classes, cluster, namespace)
            for policy in value.policies
        ]
        names = {each.pk: each.name for each in namespaces}
        keys += [(row.kind, names[pk], row.name) for pk, rows in self._rows.items() for row in rows]
        self._stored = stored_by_key(cluster, set(keys))
        self._managers = managers_of(cluster, [key for key in set(keys) if key in self._stored])

    def plan_one(self, namespace: Namespace) -> None:
        """Plan one namespace: its classes, their policies, and what leaves."""
        namespace.cluster = self.cluster
        rows = {(row.kind, row.name): row for row in self._rows[namespace.pk]}
        problems: dict[int, list[str]] = {}
        taken: dict[tuple[str, str], NamespaceClass] = {}
        for stored_class, value in matching(self._classes, self.cluster, namespace):
            given = parameter_values(value, namespace.annotations or {})
            problems[stored_class.pk] = list(given.problems)
            for index, policy in enumerate(value.policies):
                place = (policy["kind"], policy["metadata"]["name"])
                if place in taken:
                    # Two classes cannot both be right: the first by name is, as with defaults.
                    problems[stored_class.pk].append(
                        f"{place[0]} {place[1]}: class {taken[place].name} makes it already"
                    )
                    continue
                taken[place] = stored_class
                offer = WantedPolicy(
                    stored_class,
                    self._offered(stored_class, index, policy, given.values),
                )
                problems[stored_class.pk] += self._plan_policy(namespace, offer, rows.get(place))
        for place, row in rows.items():
            if place not in taken:
                self._plan_leaving(namespace, row)
        self._plan_members(namespace, problems)

    def _offered(
        self,
        owner: NamespaceClass,
        index: int,
        policy: Mapping[str, Any],
        values: Mapping[str, str],
    ) -> dict[str, Any]:
        """A policy of a class with these values, as it is stored, without a namespace."""
        key = (owner.pk, owner.name, owner.version, index, *values.items())
        if key not in self._offers:
            filled = filled_in(policy, values)
            somewhere = Namespace(cluster=self.cluster, name="")
            instance = new_object(self.cluster, filled["kind"], somewhere)
            self._offers[key] = _elsewhere(take_over(instance, filled).to_manifest(), "")
        return self._offers[key]

    def _plan_policy(
        self, namespace: Namespace, offer: WantedPolicy, row: ClassPolicy | None
    ) -> Sequence[str]:
        """Plan one policy; returns what hinders it."""
        owner, kind = offer.stored_class, offer.manifest["kind"]
        key = (kind, namespace.name, offer.manifest["metadata"]["name"])
        stored: Any = self._stored.get(key)
        if stored is None and row is not None and row.namespace_class_id == owner.pk:
            deletion = _deletion(self.cluster, key)
            self._note_row(namespace, offer, row, deletion, was_made=row.was_made)
            return ()
        if stored is None:
            return self._plan_new(namespace, offer, row, key)
        managers_row = self._managers.get(key)
        before = stored.to_manifest()
        merged = self._merged(stored, before, offer, managers_row)
        if merged.errors:
            return merged.errors
        if merged.is_changed:
            after = _elsewhere(merged.after, namespace.name)
            instance = copy.copy(stored)
            instance.forget_drafts()
            instance.replaces = stored
            take_over(instance, after)
            change = Change(key, stored, instance, before, after)
            self.plan.changes[owner.name].append(change)
        managers = managers_from_json(managers_row.fields) if managers_row else {}
        exceptions = [_exception(name, managers) for name in merged.left]
        self._note_row(namespace, offer, row, exceptions, was_made=row.was_made if row else False)
        return ()

    def _plan_new(
        self, namespace: Namespace, offer: WantedPolicy, row: ClassPolicy | None, key: Key
    ) -> Sequence[str]:
        manifest = _elsewhere(offer.manifest, namespace.name)
        instance = new_object(self.cluster, key[0], namespace)
        merge_key = ("new", id(offer.manifest))
        if merge_key not in self._merges:
            errors: tuple[str, ...] = ()
            try:
                checked(instance, manifest)
            except ValidationError as error:
                errors = _in_words(key, error)
            self._merges[merge_key] = _Merged(after=offer.manifest, is_changed=True, errors=errors)
        else:
            take_over(instance, manifest)
        if errors := self._merges[merge_key].errors:
            return errors
        new = New(key, instance, manifest, manifest)
        self.plan.news[offer.stored_class.name].append(new)
        self._note_row(namespace, offer, row, [])
        return ()

    def _merged(
        self, stored: Any, before: dict[str, Any], offer: WantedPolicy, row: ObjectManagers | None
    ) -> _Merged:
        """Merge a class's wish into a stored policy; equal ones are merged once."""
        stored_managers = managers_from_json(row.fields) if row else {}
        bare = _elsewhere(before, "")
        holders = [
            (name, each.manager.startswith(CLASS), each.removed)
            for name, each in sorted(stored_managers.items())
        ]
        merge_key = (id(offer.manifest), json.dumps([bare, holders], sort_keys=True))
        if merge_key not in self._merges:
            merged = merge_where_free(bare, offer.manifest, stored_managers, owner=CLASS)
            left = tuple(each.field for each in merged.conflicts)
            errors: tuple[str, ...] = ()
            after = merged.manifest
            if after != bare:
                instance = copy.copy(stored)
                instance.forget_drafts()
                instance.replaces = stored
                try:
                    after = checked(instance, _elsewhere(after, stored.namespace_name))
                except ValidationError as error:
                    errors = _in_words((stored.kind, "", stored.name), error)
            after = _elsewhere(after, "")
            self._merges[merge_key] = _Merged(
                after=after, is_changed=after != bare, left=left, errors=errors
            )
        return self._merges[merge_key]

    def _note_row(
        self,
        namespace: Namespace,
        offer: WantedPolicy,
        row: ClassPolicy | None,
        exceptions: list[dict[str, Any]],
        *,
        was_made: bool = True,
    ) -> None:
        """Remember which class and version a policy has, and its exceptions, if that is new."""
        owner = offer.stored_class
        noted = ClassPolicy(
            namespace_class=owner,
            namespace=namespace,
            kind=offer.manifest["kind"],
            name=offer.manifest["metadata"]["name"],
            version=owner.version,
            was_made=was_made,
            exceptions=exceptions,
            exception_count=len(exceptions),
        )
        self.plan.exceptions[owner.name] += len(exceptions)
        known = row and (row.namespace_class_id, row.was_made, row.exceptions)
        if row is None or known != (owner.pk, was_made, exceptions):
            self.plan.rows.append(noted)
        elif row.version != owner.version:
            self.plan.rows_at[owner.version].append(row.pk)

    def _plan_leaving(self, namespace: Namespace, row: ClassPolicy) -> None:
        """Plan what becomes of a policy that no class gives any more.

        One that somebody changed here, or that was here before, is not the class's to delete.
        """
        stored = self._stored.get((row.kind, namespace.name, row.name))
        is_removed = self._on_leave.get(row.namespace_class_id) is OnLeave.REMOVE
        if stored is not None and is_removed and row.was_made and not row.exceptions:
            self.plan.removals[row.namespace_class_id].append((row, stored))
        else:
            self.plan.released.append(row)

    def _plan_members(self, namespace: Namespace, problems: Mapping[int, list[str]]) -> None:
        known = {member.namespace_class_id: member for member in self._members[namespace.pk]}
        versions = {each.pk: each.version for each, _ in self._classes}
        for pk, texts in problems.items():
            member, version = known.get(pk), versions[pk]
            state = member and (member.has_left, member.problems)
            if member is not None and state == (False, texts):
                if member.version != version:
                    self.plan.members_at[version].append(member.pk)
            else:
                self.plan.members.append(
                    ClassMember(
                        namespace_class_id=pk,
                        namespace=namespace,
                        version=version,
                        problems=texts,
                    )
                )
        self.plan.leaving += [member for pk, member in known.items() if pk not in problems]


def _elsewhere(manifest: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """The same manifest for another namespace; empty: for none."""
    metadata = {name: text for name, text in manifest["metadata"].items() if name != "namespace"}
    if namespace:
        metadata = {"name": metadata.pop("name"), "namespace": namespace, **metadata}
    return {**manifest, "metadata": metadata}


def _in_words(key: Key, error: ValidationError) -> tuple[str, ...]:
    return tuple(
        f"{key[0]} {key[2]}: {path}: {entry['message']}"
        for path, entries in errors_by_path(error).items()
        for entry in entries
    )


def _exception(name: str, managers: Managers) -> dict[str, Any]:
    held = managers.get(name) or FieldManager(manager="")
    return {"field": name, **held.to_json()}


def _deletion(cluster: Cluster, key: Key) -> list[dict[str, Any]]:
    """The exception of a policy that somebody deleted."""
    kind, namespace, name = key
    last = (
        PolicyRevision.objects.of(cluster=cluster.name, kind=kind, namespace=namespace, name=name)
        .filter(action=Action.DELETE)
        .first()
    )
    by = FieldManager(
        manager=last.manager if last else "",
        revision=last.number if last else 0,
        time=last.created.isoformat(timespec="seconds") if last else "",
        removed=True,
    )
    return [{"field": OBJECT, **by.to_json()}]


def exceptions_of(row: ClassPolicy) -> list[ManagedField]:
    """The exceptions of a policy as values."""
    found = []
    for stored in row.exceptions:
        members = {name: value for name, value in stored.items() if name != "field"}
        managed = FieldManager(**{"manager": "", **members})
        found.append(ManagedField(field=stored["field"], manager=managed))
    return found
