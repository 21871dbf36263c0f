"""The import page's Plan: each Planned change of a pasted text, its digest, saved all or none."""

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
from policies.manifests import diff_in_words
from policies.manifests.bundle import read_bundle
from policies.manifests.checks import refusal_problems
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.sources import Source
from policies.models import LimitedResource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.manifests.bundle import Bundle, Wanted
    from policies.models import Cluster

SOURCE: Final = "text"
_HINTS: Final = {"unknown_namespace": "tick the box for it below, or add its manifest"}
MOST_OBJECTS: Final = 2_000
Sees = Callable[[str, str, str], bool]
"""Whether the user may see the object of this kind, namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One object of the text: its stored manifest, its new one, and the changes in words.

    A hidden object is not looked up: the answer must not reveal whether it exists.
    """

    kind: str
    namespace: str
    name: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] = field(default_factory=dict)
    changes: Sequence[str] = ()
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
    bundle = read_bundle([Source(SOURCE, text)], namespace=namespace)
    if len(bundle.objects) > MOST_OBJECTS:
        number = len(bundle.objects)
        raise ManifestError([_too_large(f"{number} objects; at most {MOST_OBJECTS} fit a page")])
    return bundle


def plan(cluster: Cluster, bundle: Bundle, *, sees: Sees, create_namespaces: bool = False) -> Plan:
    """Plan the changes of a text, object by object, without a write or a lock.

    Raises ManifestError with the problems of all objects that cannot be written.
    """
    # Read first: what is written while we plan makes the plan outdated.
    number = snapshot.revision(cluster.name)
    shown = [wanted for wanted in bundle.objects if sees(*wanted.key)]
    previews = services.preview_many(
        cluster=cluster,
        manifests=[wanted.manifest for wanted in shown],
        create_namespaces=create_namespaces,
    )
    problems = [
        problem
        for wanted, each in zip(shown, previews, strict=True)
        if each.error is not None
        for problem in refusal_problems(wanted.item, each.error, _HINTS)
    ]
    if problems:
        raise ManifestError(problems)
    preview_of = {id(wanted): each for wanted, each in zip(shown, previews, strict=True)}
    planned = [_planned_change(wanted, preview_of.get(id(wanted))) for wanted in bundle.objects]
    if bundle.limited_resources is not None:
        planned.append(_planned_configuration(cluster, bundle.limited_resources))
    pairs = zip(previews, shown, strict=True)
    return Plan(
        objects=tuple(planned),
        others=bundle.others,
        seen=_digest(planned),
        number=number,
        previews=tuple((preview, wanted.manifest) for preview, wanted in pairs),
    )


def save(cluster: Cluster, bundle: Bundle, found: Plan, *, author: tuple[str, str]) -> None:
    """Write all objects of a plan, or none; raises OvertakenError if it is outdated."""
    user, reason = author
    with services.policy_write(cluster):
        # Checked and compared before the lock: other writers wait for the statements alone.
        is_outdated = snapshot.revision(cluster.name) != found.number
        if is_outdated or any(each.is_hidden for each in found.objects):
            raise OvertakenError
        # All locks before the first write, in one order, as decisions take them.
        services.lock_used(cluster, {wanted.key[1] for wanted in bundle.objects})
        services.store_previews(cluster=cluster, previews=found.previews, user=user, reason=reason)
        if bundle.limited_resources is not None:
            entries = list(bundle.limited_resources)
            services.set_limited_resources(
                cluster=cluster, entries=entries, user=user, reason=reason
            )


def dangers_of(cluster: Cluster, found: Plan) -> tuple[list[str], str]:
    """The dangers of saving in words, and the word to type for them; empty without dangers."""
    changed = {
        each.key: each
        for each, _ in found.previews
        if each.after and each.after != each.before and mode_of(each.after) is Enforcement.ENFORCE
    }
    lints = [
        lint
        for lint in services.lint_previews(cluster, [each for each, _ in found.previews])
        if lint.code in REFUSING
        and (lint.policy.kind, lint.policy.namespace, lint.policy.name) in changed
    ]
    messages = [f"{lint.policy.namespace}/{lint.policy.name}: {lint.message}" for lint in lints]
    return messages, word_for(lint.policy.namespace for lint in lints) if lints else ""


def _too_large(message: str) -> Problem:
    return Problem(source=SOURCE, message=message, hint="divide it, or use import_manifests")


def _planned_change(wanted: Wanted, preview: services.Preview | None) -> Planned:
    kind, namespace, name = wanted.key
    if preview is None or preview.after is None:
        return Planned(kind=kind, namespace=namespace, name=name, is_hidden=True)
    changes = diff_in_words.changes(preview.before, preview.after)
    return Planned(
        kind=kind, namespace=namespace, name=name,
        before=preview.before, after=preview.after, changes=changes,
    )  # fmt: skip


def _planned_configuration(cluster: Cluster, entries: Sequence[dict[str, Any]]) -> Planned:
    blank = BY_NAME[CONFIGURATION].blank()
    rows = LimitedResource.objects.filter(cluster=cluster)
    before = {**blank, "limitedResources": [row.to_manifest() for row in rows]}
    after = {**blank, "limitedResources": list(entries)}
    changes = diff_in_words.changes(before, after)
    return Planned(
        kind=CONFIGURATION, namespace="", name="limitedResources",
        before=before, after=after, changes=changes,
    )  # fmt: skip


def _digest(planned: Sequence[Planned]) -> str:
    """A digest of the stored manifests of all objects that the user may see."""
    texts = (
        render(each.before) if each.before and each.kind in BY_NAME else str(each.before)
        for each in planned
        if not each.is_hidden
    )
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
