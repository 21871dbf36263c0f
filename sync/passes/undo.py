"""Resolutions as PolicyRevisions: sides recorded before, decisions listed, the newest undone.

Undoing writes nothing to a cluster itself. If the cluster's side has not changed since, the
difference is open again. If ours was written there meanwhile, the cluster's former side becomes
ours, and the next pass writes it back.
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
from sync import reconcile
from sync.models import SyncedObject, SyncRun
from sync.passes import lifecycle
from sync.passes.read import manifest_of, read_ownership

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import PolicyObject

KIND: Final = "Resolution"
SHOWN: Final = 5
NOT_OWNED: Final = "the portal may not write this object: take ownership first"
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Both sides and the baseline before a resolution; ``live`` is the full manifest of theirs."""

    base: Manifest | None
    ours: Manifest | None
    theirs: Manifest | None
    live: Manifest | None


def our_side(row: SyncedObject) -> PolicyObject | None:
    """The portal's object of the row's identity."""
    policy: PolicyObject | None = services.find_object(
        row.cluster, kind=row.kind, name=row.name, namespace=row.namespace
    )
    return policy


def before_deciding(row: SyncedObject) -> Before:
    """Read all sides of an object."""
    ours = our_side(row)
    return Before(
        base=row.base,
        ours=ours.to_manifest() if ours else None,
        theirs=row.theirs,
        live=manifest_of(row.live) if row.live else None,
    )


def locked(shown: SyncedObject) -> SyncedObject:
    """Lock an object's row; raises ``ValidationError`` (``changed``) if it is not as shown."""
    row = SyncedObject.objects.select_for_update().select_related(None).get(pk=shown.pk)
    if row.version != shown.version or row.theirs != shown.theirs:
        raise ValidationError("the object was changed meanwhile: review it again", code="changed")
    return row


def record_decision(
    row: SyncedObject,
    before: Before,
    *,
    choices: str | Mapping[str, str],
    author: tuple[str, str],
    action: str = Action.UPDATE,
) -> PolicyRevision:
    """Record a resolution, inside the ``policy_write`` that carries it out."""
    ours = our_side(row)
    sides_before = {name: getattr(before, name) for name in Before.__slots__}
    recorded_choices = choices if isinstance(choices, str) else dict(choices)
    left_behind = {"choices": recorded_choices, "revision": ours.revision if ours else 0}
    resolution_fields = {
        **_resolution_names(row),
        "action": action,
        "before": {"kind": KIND, "object": str(row.key), "spec": sides_before},
        "after": {"kind": KIND, "object": str(row.key), "spec": left_behind},
    }
    return record(row.cluster, resolution_fields, author=author)


def decisions(row: SyncedObject) -> list[PolicyRevision]:
    """The last resolutions of an object and their undoings, newest first."""
    revisions = PolicyRevision.objects.of(**_resolution_names(row)).order_by("-number")[: 4 * SHOWN]
    # The column cuts very long names, so that several objects may share one.
    object_key = str(row.key)
    return [each for each in revisions if (each.after or {}).get("object") == object_key][:SHOWN]


def can_be_undone(row: SyncedObject) -> PolicyRevision | None:
    """The last resolution, if it can be undone: our side has not changed since."""
    newest = next(iter(decisions(row)), None)
    if newest is None or newest.action == Action.RESTORE:
        return None
    ours = our_side(row)
    left_revision = (newest.after or {})["spec"]["revision"]
    return newest if left_revision == (ours.revision if ours else 0) else None


def undo(synced_object: SyncedObject, *, number: int, user: str, reason: str = "") -> SyncRun:
    """Undo resolution ``number``, the last one of this object; returns the run that follows.

    Raises ``ValidationError``: ``changed`` if the object or a side is not as shown, ``not_undone``
    for a resolution that cannot be undone, ``not_owned``.
    """
    cluster = synced_object.cluster
    with transaction.atomic(), services.policy_write(cluster):
        row = locked(synced_object)
        decision = can_be_undone(row)
        if decision is None or decision.number != number:
            not_undone = "this can no longer be undone: something was changed since"
            raise ValidationError(not_undone, code="not_undone")
        if not read_ownership(cluster).covers(row.key):
            raise ValidationError(NOT_OWNED, code="not_owned")
        author = (user, reason or f"decision {number} undone")
        sides_then, sides_now = (decision.before or {})["spec"], before_deciding(row)
        is_open = comes_back_open(row, decision)
        _put_side_back(row, sides_then["ours"] if is_open else sides_then["live"], author=author)
        base_again = sides_then["base"] if is_open else row.theirs
        undone_row = SyncedObject.objects.filter(pk=row.pk)
        undone_row.update(
            base=base_again, version=F("version") + 1, state=_state_again(row, base_again)
        )
        record_decision(row, sides_now, choices="undone", author=author, action=Action.RESTORE)
    return lifecycle.request(cluster, mode=SyncRun.Mode.SYNC, trigger=lifecycle.PERSON, user=user)


def comes_back_open(row: SyncedObject, decision: PolicyRevision) -> bool:
    """Whether undoing opens the difference again; else it restores the cluster's former side."""
    sides_then = (decision.before or {})["spec"]
    chosen_side = (decision.after or {})["spec"]["choices"]
    return bool(sides_then["theirs"] == row.theirs or chosen_side == "theirs")


def _state_again(row: SyncedObject, base: Manifest | None) -> str:
    """The state that the next pass will find, now that our side is put back."""
    ours = our_side(row)
    manifest = ours.to_manifest() if ours else None
    return reconcile.judge(base, manifest, row.theirs, owned=True).state


def _put_side_back(
    row: SyncedObject, manifest: Manifest | None, *, author: tuple[str, str]
) -> None:
    """Make our side this manifest, or delete ours for None."""
    user, reason = author
    policy = our_side(row)
    if manifest is None:
        if policy is not None:
            services.delete_policy(policy=policy, user=user, reason=reason)
        return
    names = {"kind": row.kind, "namespace": row.namespace, "name": row.name}
    deletions = PolicyRevision.objects.of(cluster=row.cluster.name, **names).order_by("-number")
    last = deletions.first()
    # Restoring keeps the uid of an object that the resolution deleted, and with it its ledger.
    if policy is None and last and last.action == Action.DELETE and last.before == manifest:
        services.restore_revision(revision=last, user=user, reason=reason)
    else:
        services.apply_manifest(
            cluster=row.cluster, manifest=manifest, user=user, reason=reason, create_namespace=True
        )


def _resolution_names(row: SyncedObject) -> dict[str, str]:
    name = f"{row.kind}/{row.name}"[:253]
    return {"cluster": row.cluster.name, "namespace": row.namespace, "kind": KIND, "name": name}
