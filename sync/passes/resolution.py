"""People's decisions: take ours, theirs or mix by field; own objects; confirm held deletions.

Nothing here sends a request to a cluster. A resolution changes the baseline, and our side where
theirs is taken; it requests the pass that writes to the cluster, which still yields to changes made
there since. A side that has changed since the person saw it is not resolved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F

from policies import services
from policies.services.write import Action, record
from sync import alerts, reconcile
from sync.models import SyncedObject, SyncOwnership, SyncResult, SyncRun
from sync.passes import lifecycle, undo
from sync.passes.read import manifest_of, read_ownership
from sync.values import READ_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import Cluster

OURS: Final = "ours"
THEIRS: Final = "theirs"
OWNERSHIP: Final = "SyncOwnership"
OWNERSHIP_WHY: Final = "ownership"
"""The reason on record where nobody gave one."""


def resolve(
    synced_object: SyncedObject,
    *,
    choices: str | Mapping[str, str],
    revision: int,
    user: str,
    reason: str = "",
) -> SyncRun:
    """Resolve a conflict or drift: ``ours``, ``theirs``, or either by field (``.spec.hard.pods``).

    The person saw the cluster's side in ``synced_object``, and ours at ``revision`` (0 for none).
    ``ValidationError``: code ``changed`` or ``ours_changed`` if a side differs by now,
    ``not_owned`` if ours is taken without ownership. Returns the run that carries it out.
    """
    cluster = synced_object.cluster
    with transaction.atomic(), services.policy_write(cluster):
        locked_row = undo.locked(synced_object)
        if locked_row.kind in READ_KINDS:
            raise ValidationError(f"a {locked_row.kind} always follows the cluster", code="follows")
        # Revisions of a name continue after a deletion, so that a new object never has an old one.
        ours = undo.our_side(locked_row)
        if (ours.revision if ours else 0) != revision:
            changed_message = "the portal's side was changed meanwhile: review it again"
            raise ValidationError(changed_message, code="ours_changed")
        if choices != THEIRS and not read_ownership(cluster).covers(locked_row.key):
            raise ValidationError(undo.NOT_OWNED, code="not_owned")
        before_decision = undo.before_deciding(locked_row)
        if choices == THEIRS:
            _take_theirs(locked_row, user=user, reason=reason)
        elif choices != OURS:
            _mix_sides(locked_row, choices, user=user, reason=reason)
        resolved_rows = SyncedObject.objects.filter(pk=locked_row.pk)
        live_uid = (locked_row.live or {}).get("metadata", {}).get("uid") or locked_row.object_uid
        # The person decided about the cluster's present side, so a later change of it conflicts.
        resolved_rows.update(
            base=locked_row.theirs,
            object_uid=live_uid,
            version=F("version") + 1,
            # At once, so that nobody is asked again before the next pass compares both sides.
            state=SyncedObject.State.IN_SYNC if choices == THEIRS else SyncedObject.State.PENDING,
        )
        undo.record_decision(locked_row, before_decision, choices=choices, author=(user, reason))
    return lifecycle.request(cluster, mode=SyncRun.Mode.SYNC, trigger=lifecycle.PERSON, user=user)


def _take_theirs(row: SyncedObject, *, user: str, reason: str) -> None:
    """Store their side as ours, or delete ours if the cluster has none."""
    cluster, why = row.cluster, reason or "resolved: the cluster's side counts"
    if row.live is not None:
        manifest = manifest_of(row.live)
        services.apply_manifest(
            cluster=cluster, manifest=manifest, user=user, reason=why, create_namespace=True
        )
        return
    policy = undo.our_side(row)
    if policy is not None:
        services.delete_policy(policy=policy, user=user, reason=why)


def _mix_sides(
    row: SyncedObject, choices: str | Mapping[str, str], *, user: str, reason: str
) -> None:
    """Store the choices for each field as our side."""
    policy = undo.our_side(row)
    if isinstance(choices, str) or policy is None or row.live is None:
        whole_message = "one side has no such object: take ours or theirs as a whole"
        raise ValidationError(whole_message, code="whole")
    sides = cast("Mapping[str, reconcile.Side]", choices)
    try:
        merged = reconcile.resolve(row.base, policy.to_manifest(), row.theirs, choices=sides) or {}
    except reconcile.ResolutionError as error:
        raise ValidationError(str(error), code="choices") from error
    mixed_reason = reason or "resolved field by field"
    services.apply_manifest(cluster=row.cluster, manifest=merged, user=user, reason=mixed_reason)


def take_ownership(
    cluster: Cluster, user: str, *, namespace: str = "", kind: str = "", name: str = ""
) -> SyncOwnership:
    """Let the portal write an object, a namespace or (without names) the whole cluster."""
    ownership_place = require_place(namespace, kind, name)
    with services.policy_write(cluster):
        ownership, is_new = SyncOwnership.objects.get_or_create(
            cluster=cluster, **ownership_place, defaults={"user": user}
        )
        if is_new:
            _record_ownership(cluster, ownership_place, Action.CREATE, user=user)
    lifecycle.request(cluster, mode=SyncRun.Mode.SYNC, trigger=lifecycle.PERSON, user=user)
    return ownership


def require_known_namespace(cluster: Cluster, namespace: str) -> None:
    """Raise ``ValidationError`` (``unknown_place``) if nothing is known in the namespace."""
    known_objects = SyncedObject.objects.filter(cluster=cluster, gone=None, namespace=namespace)
    if not known_objects.exists():
        unknown = "No namespace of that name is known."
        raise ValidationError({"namespace": ValidationError(unknown, code="unknown_place")})


def release_ownership(  # noqa: PLR0913 - the place and the reason, all by name
    cluster: Cluster,
    user: str,
    *,
    namespace: str = "",
    kind: str = "",
    name: str = "",
    reason: str = "",
) -> bool:
    """End an ownership; objects in the cluster stay. False if there was no such ownership."""
    ownership_place = require_place(namespace, kind, name)
    with services.policy_write(cluster):
        deleted, _ = SyncOwnership.objects.filter(cluster=cluster, **ownership_place).delete()
        if deleted:
            _record_ownership(
                cluster, ownership_place, Action.DELETE, user=user, reason=reason or OWNERSHIP_WHY
            )
            _note_unowned(cluster)
    return bool(deleted)


def _note_unowned(cluster: Cluster) -> None:
    """Objects that drifted and are not owned any more wait for nobody: they follow the cluster."""
    owned = read_ownership(cluster)
    drifted = SyncedObject.objects.filter(cluster=cluster, state=SyncedObject.State.DRIFTED)
    rows = drifted.only("kind", "namespace", "name")
    released = [row.pk for row in rows if not owned.covers(row.key)]
    SyncedObject.objects.filter(pk__in=released).update(state=SyncedObject.State.UNOWNED)


def require_place(namespace: str, kind: str, name: str) -> dict[str, str]:
    """The columns of a place; raises ``ValidationError`` for one that nobody can own."""
    if bool(kind) != bool(name) or (kind and not namespace):
        raise ValidationError("an object is named by namespace, kind and name", code="place")
    if kind and kind not in services.KINDS:
        raise ValidationError(f"a {kind} is only read, never written", code="kind")
    return {"namespace": namespace, "kind": kind, "name": name}


def _record_ownership(
    cluster: Cluster,
    place: dict[str, str],
    action: str,
    *,
    user: str,
    reason: str = OWNERSHIP_WHY,
) -> None:
    """Record that an ownership begins or ends."""
    text = "/".join(filter(None, place.values())) or "*"
    manifest: dict[str, Any] = {"kind": OWNERSHIP, "metadata": {"name": text}, "spec": place}
    revision_sides = {"after": manifest} if action == Action.CREATE else {"before": manifest}
    revision_names = {"cluster": cluster.name, "namespace": place["namespace"], "kind": OWNERSHIP}
    revision_fields = {**revision_names, "name": text[:253], "action": action, **revision_sides}
    record(cluster, revision_fields, author=(user, reason))


def confirm_held(run: SyncRun, user: str, *, read: int | None = None) -> SyncRun:
    """Let a held run carry out the deletions that it was held for, and no others.

    ``read`` is the number of deletions that the person has read. Raises ``ValidationError``:
    ``not_read`` for another number, ``not_held`` if the run is not held, or no longer.
    """
    with transaction.atomic():
        deletions = run.results.filter(outcome=SyncResult.Outcome.HELD).count()
        if read not in (None, deletions):
            not_read = "Nothing was confirmed: read the list of deletions first."
            raise ValidationError({"held": ValidationError(not_read, code="not_read")})
        held_run = SyncRun.objects.filter(pk=run.pk, state=SyncRun.State.HELD)
        waiting_runs = SyncRun.objects.filter(cluster=run.cluster_id, mode=run.mode)
        # Only one run of a mode may wait, and another one would be held again.
        waiting_runs.filter(state=SyncRun.State.WAITING).delete()
        if not held_run.update(
            state=SyncRun.State.WAITING,
            confirmed_by=user,
            trigger=lifecycle.PERSON,
            user=user,
            attempt=0,
            queued=None,
            finished=None,
        ):
            raise ValidationError("this run is not held", code="not_held")
    alerts.resolve(run.cluster, lifecycle.ALERT_HELD)
    run.refresh_from_db()
    return run
