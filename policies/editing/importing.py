"""Many policies of one text: what each would change, in words, and saving all of them or none."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from policies import services
from policies.editing import words
from policies.editing.drafts import LONGEST, render
from policies.editing.kinds import BY_NAME, CONFIGURATION
from policies.manifests.bundle import read_bundle
from policies.manifests.problems import ManifestError, Problem
from policies.manifests.sources import Source
from policies.models import LimitedResource
from policies.validators import errors_by_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policies.manifests.bundle import Bundle, Wanted
    from policies.models import Cluster

SOURCE: Final = "text"
_WAYS_OUT: Final = {"unknown_namespace": "tick the box for it below, or add its manifest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One object of the text: what is stored, what will be, and the difference in words."""

    kind: str
    namespace: str
    name: str
    before: dict[str, Any] | None
    after: dict[str, Any]
    changes: Sequence[str]

    @property
    def verb(self) -> str:
        """What saving does with it."""
        if self.before is None:
            return "created"
        return "changed" if self.changes else "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All objects; ``seen`` is what was stored of them, so that nothing is written over blindly."""

    objects: tuple[Planned, ...] = ()
    problems: tuple[Problem, ...] = ()
    others: tuple[str, ...] = ()
    seen: str = ""


class OvertakenError(Exception):
    """Something was written since the plan was shown."""


def plan(cluster: Cluster, text: str, *, namespace: str, create_namespaces: bool = False) -> Plan:
    """Say what a text would change, object by object; nothing is written."""
    if len(text) > LONGEST:
        problem = Problem(
            source=SOURCE, message=f"longer than {LONGEST} characters", hint="import_manifests"
        )
        return Plan(problems=(problem,))
    try:
        bundle = read_bundle([Source(SOURCE, text)], namespace=namespace)
        with transaction.atomic():
            planned = list(_carried_out(cluster, bundle, author=("", ""), create=create_namespaces))
            transaction.set_rollback(True)
    except ManifestError as error:
        return Plan(problems=tuple(error.problems))
    return Plan(objects=tuple(planned), others=bundle.others, seen=_digest(planned))


def save(  # noqa: PLR0913 - all but two by name
    cluster: Cluster,
    text: str,
    *,
    namespace: str,
    seen: str,
    author: tuple[str, str],
    create_namespaces: bool = False,
) -> Plan:
    """Write all objects, or none; raises ManifestError, and OvertakenError if ``seen`` is old."""
    bundle = read_bundle([Source(SOURCE, text)], namespace=namespace)
    with services.policy_write(cluster):
        planned = list(_carried_out(cluster, bundle, author=author, create=create_namespaces))
        if _digest(planned) != seen:
            raise OvertakenError
    return Plan(objects=tuple(planned), others=bundle.others, seen=seen)


def _carried_out(
    cluster: Cluster, bundle: Bundle, *, author: tuple[str, str], create: bool
) -> Iterator[Planned]:
    """Write object after object inside a transaction, with what each changed."""
    problems: list[Problem] = []
    with services.policy_write(cluster):
        services.lock_used(cluster, {wanted.key[1] for wanted in bundle.objects})
        for wanted in bundle.objects:
            try:
                yield _written(cluster, wanted, author=author, create=create)
            except ValidationError as error:
                problems += [
                    wanted.item.problem(path, entry["message"], _WAYS_OUT.get(entry["code"], ""))
                    for path, entries in errors_by_path(error).items()
                    for entry in entries
                ]
        if problems:
            raise ManifestError(problems)
        if bundle.limited_resources is not None:
            yield _configured(cluster, bundle.limited_resources, author=author)


def _written(cluster: Cluster, wanted: Wanted, *, author: tuple[str, str], create: bool) -> Planned:
    user, reason = author
    kind, namespace, name = wanted.key
    stored = services.find_object(cluster, kind=kind, name=name, namespace=namespace)
    before = stored.to_manifest() if stored else None
    saved = services.apply_manifest(
        cluster=cluster,
        manifest=wanted.manifest,
        user=user,
        reason=reason,
        create_namespace=create,
    )
    after = saved.instance.to_manifest()
    changes = words.changes(before, after)
    return Planned(
        kind=kind, namespace=namespace, name=name, before=before, after=after, changes=changes
    )


def _configured(
    cluster: Cluster, entries: Sequence[dict[str, Any]], *, author: tuple[str, str]
) -> Planned:
    user, reason = author
    blank = BY_NAME[CONFIGURATION].blank()
    rows = LimitedResource.objects.filter(cluster=cluster)
    before = {**blank, "limitedResources": [row.to_manifest() for row in rows]}
    services.set_limited_resources(cluster=cluster, entries=list(entries), user=user, reason=reason)
    after = {**blank, "limitedResources": list(entries)}
    changes = words.changes(before, after)
    return Planned(
        kind=CONFIGURATION, namespace="", name="limitedResources",
        before=before, after=after, changes=changes,
    )  # fmt: skip


def _digest(planned: Sequence[Planned]) -> str:
    """What was stored, as one word."""
    texts = (render(each.before) if each.before and each.kind in BY_NAME else str(each.before)
             for each in planned)  # fmt: skip
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
