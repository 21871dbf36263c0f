"""The import page's Plan: Planned objects of a pasted text, digest, dangers, saved all or none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.policy import Enforcement
from policies import services, snapshot
from policies.drafts.danger import REFUSING, mode_of, word_for
from policies.drafts.draft import LONGEST, render
from policies.drafts.kinds import BY_NAME, CONFIGURATION
from policies.managed_fields import managers_from_json, overwritten
from policies.manifests import diff_in_words
from policies.manifests.bundle import read_bundle
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.refusals import refusal_problems
from policies.manifests.sources import Source
from policies.models import LimitedResource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.managed_fields import ManagedField
    from policies.manifests.bundle import Bundle, Wanted
    from policies.models import Cluster, ObjectManagers

SOURCE: Final = "text"
_HINTS: Final = {"unknown_namespace": "tick the box for it below, or add its manifest"}
MOST_OBJECTS: Final = 2_000
Sees = Callable[[str, str, str], bool]
"""Whether the user may see the object of this kind, namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One object of the text: its stored manifest, its new one, and the changes in words.

    ``overwrites`` are the changed fields that a set, a cluster or another person has set.

    A hidden object is not looked up: the answer must not reveal whether it exists.
    """

    kind: str
    namespace: str
    name: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] = field(default_factory=dict)
    changes: Sequence[str] = ()
    overwrites: Sequence[ManagedField] = ()
    is_hidden: bool = False

    @property
    def verb(self) -> str:
        """The effect of saving: created, changed or unchanged."""
        if self.before is None:
            return "created"
        return "changed" if self.changes else "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All objects of a text; ``seen`` is a digest of their stored manifests.

    ``number`` is the cluster's revision when the plan was made; ``previews`` are what is saved.
    """

    objects: tuple[Planned, ...] = ()
    problems: tuple[Problem, ...] = ()
    others: tuple[str, ...] = ()
    seen: str = ""
    number: int = 0
    previews: tuple[tuple[services.Preview, Mapping[str, Any]], ...] = ()


class OvertakenError(Exception):
    """Policies were written since the plan was shown."""


def read(text: str, *, namespace: str) -> Bundle:
    """Read a pasted text; raises ManifestError, also for more than fits a page."""
    if len(text) > LONGEST:
        raise ManifestError([_too_large(f"{len(text)} characters; at most {LONGEST} fit a page")])
    pasted_bundle = read_bundle([Source(SOURCE, text)], namespace=namespace)
    if pasted_bundle.classes:
        message = "a namespace class applies to all clusters: save it on the page of classes"
        raise ManifestError([each.item.problem("kind", message) for each in pasted_bundle.classes])
    if len(pasted_bundle.objects) > MOST_OBJECTS:
        number = len(pasted_bundle.objects)
        raise ManifestError([_too_large(f"{number} objects; at most {MOST_OBJECTS} fit a page")])
    return pasted_bundle


def plan(cluster: Cluster, bundle: Bundle, *, sees: Sees, create_namespaces: bool = False) -> Plan:
    """Plan the changes of a text, object by object, without a write or a lock.

    Raises ManifestError with the problems of all objects that cannot be written.
    """
    # Read first: what is written while we plan makes the plan outdated.
    cluster_revision = snapshot.revision(cluster.name)
    visible = [wanted for wanted in bundle.objects if sees(*wanted.key)]
    previews = services.preview_many(
        cluster=cluster,
        manifests=[wanted.manifest for wanted in visible],
        create_namespaces=create_namespaces,
    )
    plan_problems = [
        problem
        for wanted, each in zip(visible, previews, strict=True)
        if each.error is not None
        for problem in refusal_problems(wanted.item, each.error, _HINTS)
    ]
    if plan_problems:
        raise ManifestError(plan_problems)
    rows = services.managers_of(cluster, [each.key for each in previews])
    preview_of = {id(wanted): each for wanted, each in zip(visible, previews, strict=True)}
    planned = [
        _planned_change(wanted, preview_of.get(id(wanted)), rows.get(wanted.key))
        for wanted in bundle.objects
    ]
    if bundle.limited_resources is not None:
        planned.append(_planned_configuration(cluster, bundle.limited_resources))
    preview_pairs = zip(previews, visible, strict=True)
    return Plan(
        objects=tuple(planned),
        others=bundle.others,
        seen=_digest(planned),
        number=cluster_revision,
        previews=tuple((preview, wanted.manifest) for preview, wanted in preview_pairs),
    )


def save(cluster: Cluster, bundle: Bundle, shown: Plan, *, author: tuple[str, str]) -> None:
    """Write all objects of a plan, or none; raises OvertakenError if it is outdated."""
    user, reason = author
    with services.policy_write(cluster):
        # Checked and compared before the lock: other writers wait for the statements alone.
        is_outdated = snapshot.revision(cluster.name) != shown.number
        if is_outdated or any(planned.is_hidden for planned in shown.objects):
            raise OvertakenError
        # All locks before the first write, in one order, as decisions take them.
        services.lock_used(cluster, {wanted.key[1] for wanted in bundle.objects})
        services.store_previews(cluster=cluster, previews=shown.previews, user=user, reason=reason)
        if bundle.limited_resources is not None:
            limited_entries = list(bundle.limited_resources)
            services.set_limited_resources(
                cluster=cluster, entries=limited_entries, user=user, reason=reason
            )


def dangers_of(cluster: Cluster, shown_plan: Plan) -> tuple[list[str], str]:
    """The dangers of saving in words, and the word to type for them; empty without dangers."""
    enforced_changes = {
        each.key: each
        for each, _ in shown_plan.previews
        if each.after and each.after != each.before and mode_of(each.after) is Enforcement.ENFORCE
    }
    lints = [
        lint
        for lint in services.lint_previews(cluster, [each for each, _ in shown_plan.previews])
        if lint.code in REFUSING
        and (lint.policy.kind, lint.policy.namespace, lint.policy.name) in enforced_changes
    ]
    messages = [f"{lint.policy.namespace}/{lint.policy.name}: {lint.message}" for lint in lints]
    return messages, word_for(lint.policy.namespace for lint in lints) if lints else ""


def _too_large(message: str) -> Problem:
    return Problem(source=SOURCE, message=message, hint="divide it, or use import_manifests")


def _planned_change(
    wanted: Wanted, preview: services.Preview | None, row: ObjectManagers | None
) -> Planned:
    kind, namespace, name = wanted.key
    if preview is None or preview.after is None:
        return Planned(kind=kind, namespace=namespace, name=name, is_hidden=True)
    planned_changes = diff_in_words.changes(preview.before, preview.after)
    managers = managers_from_json(row.fields if row else {})
    overwrites = overwritten(managers, preview.before, preview.after)
    return Planned(
        kind=kind, namespace=namespace, name=name,
        before=preview.before, after=preview.after,
        changes=planned_changes, overwrites=overwrites,
    )  # fmt: skip


def _planned_configuration(cluster: Cluster, entries: Sequence[dict[str, Any]]) -> Planned:
    blank_configuration = BY_NAME[CONFIGURATION].blank()
    stored = LimitedResource.objects.filter(cluster=cluster)
    before = {**blank_configuration, "limitedResources": [row.to_manifest() for row in stored]}
    after = {**blank_configuration, "limitedResources": list(entries)}
    planned_changes = diff_in_words.changes(before, after)
    return Planned(
        kind=CONFIGURATION, namespace="", name="limitedResources",
        before=before, after=after, changes=planned_changes,
    )  # fmt: skip


def _digest(planned: Sequence[Planned]) -> str:
    """A digest of the stored manifests of all objects that the user may see."""
    stored_manifests = (
        render(each.before) if each.before and each.kind in BY_NAME else str(each.before)
        for each in planned
        if not each.is_hidden
    )
    return hashlib.sha256("\0".join(stored_manifests).encode()).hexdigest()
