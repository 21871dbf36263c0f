"""Undo a resolution, from the sides that it recorded.

Undoing writes nothing to a cluster itself. Where the cluster's side is still what it was, the
difference is back as if nobody had decided. Where ours was written there meanwhile, what the
cluster had becomes our side, and the next pass gives it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F

from policies import services
from policies.models import PolicyRevision
from policies.services.write import Action, record
from sync.models import SyncedObject, SyncRun
from sync.passes import lifecycle
from sync.passes.read import manifest_of, read_ownership
from sync.values import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import PolicyObject

KIND: Final = "Resolution"
SHOWN: Final = 5
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Both sides and what was agreed on, before somebody decided; ``live`` is theirs in full."""

    base: Manifest | None
    ours: Manifest | None
    theirs: Manifest | None
    live: Manifest | None


def our_side(row: SyncedObject) -> PolicyObject | None:
    """What the portal has stored under the object's names."""
    found: PolicyObject | None = services.find_object(
        row.cluster, kind=row.kind, name=row.name, namespace=row.namespace
    )
    return found


def before_deciding(row: SyncedObject) -> Before:
    """Keep all sides of an object."""
    ours = our_side(row)
    return Before(
        base=row.base,
        ours=ours.to_manifest() if ours else None,
        theirs=row.theirs,
        live=manifest_of(row.live) if row.live else None,
    )


def put_on_record(
    row: SyncedObject,
    before: Before,
    *,
    choices: str | Mapping[str, str],
    author: tuple[str, str],
    action: str = Action.UPDATE,
) -> PolicyRevision:
    """Write down what was decided, inside the ``policy_write`` that carries it out."""
    ours = our_side(row)
    sides = {name: getattr(before, name) for name in Before.__slots__}
    chosen = choices if isinstance(choices, str) else dict(choices)
    left = {"choices": chosen, "revision": ours.revision if ours else 0}
    fields = {
        **_names(row),
        "action": action,
        "before": {"kind": KIND, "object": str(_key(row)), "spec": sides},
        "after": {"kind": KIND, "object": str(_key(row)), "spec": left},
    }
    return record(row.cluster, fields, author=author)


def decisions(row: SyncedObject) -> list[PolicyRevision]:
    """The last decisions about an object, newest first; an undone one stands before its undoing."""
    found = PolicyRevision.objects.of(**_names(row)).order_by("-number")[: 4 * SHOWN]
    return [one for one in found if _is_of(one, row)][:SHOWN]


def can_be_undone(row: SyncedObject) -> PolicyRevision | None:
    """The decision that undoing would take back: the last one, while our side is what it left."""
    newest = next(iter(decisions(row)), None)
    if newest is None or newest.action == Action.RESTORE:
        return None
    ours = our_side(row)
    left = (newest.after or {})["spec"]["revision"]
    return newest if left == (ours.revision if ours else 0) else None


def undo(synced_object: SyncedObject, *, number: int, user: str, reason: str = "") -> SyncRun:
    """Take back decision ``number``, the last one about this object; gives the run that follows.

    Raises ``ValidationError``: ``changed`` where the object or a side is not what was shown,
    ``not_undone`` for a decision that cannot be, ``not_owned``.
    """
    cluster = synced_object.cluster
    with transaction.atomic(), services.policy_write(cluster):
        row = SyncedObject.objects.select_for_update().select_related(None).get(pk=synced_object.pk)
        if row.version != synced_object.version or row.theirs != synced_object.theirs:
            _refuse("changed", "the object changed meanwhile; look at it again")
        decision = can_be_undone(row)
        if decision is None or decision.number != number:
            _refuse("not_undone", "this is not undone any more: something was changed since")
        elif not read_ownership(cluster).covers(_key(row)):
            _refuse("not_owned", "the portal may not write this object: take ownership first")
        else:
            _take_back(row, decision, author=(user, reason or f"decision {number} undone"))
    return lifecycle.request(cluster, mode=SyncRun.Mode.SYNC, trigger=lifecycle.PERSON, user=user)


def comes_back_open(row: SyncedObject, decision: PolicyRevision) -> bool:
    """Whether undoing opens the difference again; else the cluster gets back what it had."""
    was = (decision.before or {})["spec"]
    chosen = (decision.after or {})["spec"]["choices"]
    return bool(was["theirs"] == row.theirs or chosen == "theirs")


def _take_back(row: SyncedObject, decision: PolicyRevision, *, author: tuple[str, str]) -> None:
    was, now = (decision.before or {})["spec"], before_deciding(row)
    is_open = comes_back_open(row, decision)
    _put(row, was["ours"] if is_open else was["live"], author=author)
    base = was["base"] if is_open else row.theirs
    changed = SyncedObject.objects.filter(pk=row.pk)
    changed.update(base=base, version=F("version") + 1)
    put_on_record(row, now, choices="undone", author=author, action=Action.RESTORE)


def _put(row: SyncedObject, manifest: Manifest | None, *, author: tuple[str, str]) -> None:
    """Make our side this manifest; what was deleted comes back under its old uid."""
    user, reason = author
    found = our_side(row)
    if manifest is None:
        if found is not None:
            services.delete_policy(policy=found, user=user, reason=reason)
        return
    names = {"kind": row.kind, "namespace": row.namespace, "name": row.name}
    deleted = PolicyRevision.objects.of(cluster=row.cluster.name, **names).order_by("-number")
    last = deleted.first()
    if found is None and last and last.action == Action.DELETE and last.before == manifest:
        services.restore_revision(revision=last, user=user, reason=reason)
    else:
        services.apply_manifest(
            cluster=row.cluster, manifest=manifest, user=user, reason=reason, create_namespace=True
        )


def _refuse(code: str, message: str) -> None:
    raise ValidationError(message, code=code)


def _key(row: SyncedObject) -> ObjectKey:
    return ObjectKey(row.kind, row.namespace, row.name)


def _names(row: SyncedObject) -> dict[str, str]:
    name = f"{row.kind}/{row.name}"[:253]
    return {"cluster": row.cluster.name, "namespace": row.namespace, "kind": KIND, "name": name}


def _is_of(revision: PolicyRevision, row: SyncedObject) -> bool:
    """Whether it is about this object: very long names are cut where they are kept."""
    return (revision.after or {}).get("object") == str(_key(row))
