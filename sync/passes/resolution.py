"""Resolutions of drift and conflicts by people, ownership, and confirmed deletions.

Nothing here asks a cluster. A decision changes what both sides are said to have agreed on, and our
side where theirs is taken; the next pass, which is asked for at once, does the rest, and still
yields to whatever changed in the cluster since the person looked. What changed here since then is
not decided on, either: whoever looks again sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F

from policies import services
from policies.services.write import Action, record
from sync import alerts, reconcile
from sync.models import SyncedObject, SyncOwnership, SyncRun
from sync.passes import lifecycle, undo
from sync.passes.read import manifest_of, read_ownership
from sync.values import READ_KINDS, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import Cluster

OURS: Final = "ours"
THEIRS: Final = "theirs"
OWNERSHIP: Final = "SyncOwnership"


def resolve(
    synced_object: SyncedObject,
    *,
    choices: str | Mapping[str, str],
    revision: int,
    user: str,
    reason: str = "",
) -> SyncRun:
    """Decide a conflict or drift: ``ours``, ``theirs``, or either by field (``.spec.hard.pods``).

    Decided is what the person saw: the cluster's side as ``synced_object`` has it, and ours at
    ``revision`` (0: there was none). Where either is another by now, ``ValidationError`` (code
    ``changed``, or ``ours_changed``) asks to look again. Taking ours needs ownership (code
    ``not_owned``). Returns the run that carries it out.
    """
    cluster = synced_object.cluster
    with transaction.atomic(), services.policy_write(cluster):
        row = _locked(synced_object)
        _require_seen(row, revision)
        key = ObjectKey(row.kind, row.namespace, row.name)
        if choices != THEIRS and not read_ownership(cluster).covers(key):
            _refuse("not_owned", "the portal may not write this object: take ownership first")
        before = undo.before_deciding(row)
        if choices == THEIRS:
            _take_theirs(row, user=user, reason=reason)
        elif choices != OURS:
            _mix(row, choices, user=user, reason=reason)
        changed = SyncedObject.objects.filter(pk=row.pk)
        uid = (row.live or {}).get("metadata", {}).get("uid") or row.object_uid
        changed.update(base=row.theirs, object_uid=uid, version=F("version") + 1)
        undo.put_on_record(row, before, choices=choices, author=(user, reason))
    return lifecycle.request(cluster, mode=SyncRun.Mode.SYNC, trigger=lifecycle.PERSON, user=user)


def _refuse(code: str, message: str) -> None:
    raise ValidationError(message, code=code)


def _locked(shown: SyncedObject) -> SyncedObject:
    """Read the row under lock, as long as it still says what the person saw."""
    row = SyncedObject.objects.select_for_update().select_related(None).get(pk=shown.pk)
    if row.theirs != shown.theirs or row.version != shown.version:
        _refuse("changed", "the object changed meanwhile; look at it again")
    if row.kind in READ_KINDS:
        _refuse("follows", f"a {row.kind} always follows the cluster")
    return row


def _require_seen(row: SyncedObject, revision: int) -> None:
    """Refuse what was decided on another version of our side than is stored.

    Revisions of a name count on after a deletion: what was made anew is never taken for the same.
    """
    ours = _ours(row)
    if (ours.revision if ours else 0) != revision:
        _refuse("ours_changed", "the portal's side was changed meanwhile; look at it again")


def _ours(row: SyncedObject) -> Any:
    return services.find_object(row.cluster, kind=row.kind, name=row.name, namespace=row.namespace)


def _take_theirs(row: SyncedObject, *, user: str, reason: str) -> None:
    """Make our side what theirs is; where the cluster has nothing, delete ours."""
    cluster, text = row.cluster, reason or "resolved: the cluster's side counts"
    if row.live is not None:
        manifest = manifest_of(row.live)
        services.apply_manifest(
            cluster=cluster, manifest=manifest, user=user, reason=text, create_namespace=True
        )
        return
    policy = _ours(row)
    if policy is not None:
        services.delete_policy(policy=policy, user=user, reason=text)


def _mix(row: SyncedObject, choices: str | Mapping[str, str], *, user: str, reason: str) -> None:
    """Write our side as it was chosen field by field."""
    policy = _ours(row)
    if isinstance(choices, str) or policy is None or row.live is None:
        _refuse("whole", "one side has no such object: take ours or theirs as a whole")
    else:
        mixed = _decided(row, policy.to_manifest(), choices)
        text = reason or "resolved field by field"
        services.apply_manifest(cluster=row.cluster, manifest=mixed, user=user, reason=text)


def _decided(row: SyncedObject, ours: dict[str, Any], choices: Mapping[str, str]) -> dict[str, Any]:
    sides = cast("Mapping[str, reconcile.Side]", choices)
    try:
        return reconcile.resolve(row.base, ours, row.theirs, choices=sides) or {}
    except reconcile.ResolutionError as error:
        raise ValidationError(str(error), code="choices") from error


def take_ownership(
    cluster: Cluster, user: str, *, namespace: str = "", kind: str = "", name: str = ""
) -> SyncOwnership:
    """Let the portal write an object, a namespace or (nothing named) the whole cluster."""
    place = _place(namespace, kind, name)
    with services.policy_write(cluster):
        found, is_new = SyncOwnership.objects.get_or_create(
            cluster=cluster, **place, defaults={"user": user}
        )
        if is_new:
            _record(cluster, place, Action.CREATE, user=user)
    lifecycle.request(cluster, mode=SyncRun.Mode.SYNC, trigger=lifecycle.PERSON, user=user)
    return found


def release_ownership(
    cluster: Cluster, user: str, *, namespace: str = "", kind: str = "", name: str = ""
) -> bool:
    """Write there no more; what was written stays. False where nothing of it was owned."""
    place = _place(namespace, kind, name)
    with services.policy_write(cluster):
        found, _ = SyncOwnership.objects.filter(cluster=cluster, **place).delete()
        if found:
            _record(cluster, place, Action.DELETE, user=user)
    return bool(found)


def _place(namespace: str, kind: str, name: str) -> dict[str, str]:
    if bool(kind) != bool(name) or (kind and not namespace):
        _refuse("place", "an object is named by namespace, kind and name")
    if kind and kind not in services.KINDS:
        _refuse("kind", f"a {kind} is only ever read")
    return {"namespace": namespace, "kind": kind, "name": name}


def _record(cluster: Cluster, place: dict[str, str], action: str, *, user: str) -> None:
    """Put on record what the portal may write from now on, or no more."""
    text = "/".join(filter(None, place.values())) or "*"
    manifest: dict[str, Any] = {"kind": OWNERSHIP, "metadata": {"name": text}, "spec": place}
    sides = {"after": manifest} if action == Action.CREATE else {"before": manifest}
    names = {"cluster": cluster.name, "namespace": place["namespace"], "kind": OWNERSHIP}
    fields = {**names, "name": text[:253], "action": action, **sides}
    record(cluster, fields, author=(user, "ownership"))


def confirm_held(run: SyncRun, user: str) -> SyncRun:
    """Let a held pass delete what it was held for, and nothing beyond.

    Raises ``ValidationError`` (code ``not_held``) where it is not held, or no longer.
    """
    with transaction.atomic():
        held = SyncRun.objects.filter(pk=run.pk, state=SyncRun.State.HELD)
        waiting = SyncRun.objects.filter(cluster=run.cluster_id, mode=run.mode)
        # A run of the same kind that waits would do the same unconfirmed: this one is first.
        waiting.filter(state=SyncRun.State.WAITING).delete()
        if not held.update(
            state=SyncRun.State.WAITING,
            confirmed_by=user,
            trigger=lifecycle.PERSON,
            user=user,
            attempt=0,
            queued=None,
            finished=None,
        ):
            _refuse("not_held", "this run is not held (any more)")
    alerts.resolve(run.cluster, lifecycle.ALERT_HELD)
    run.refresh_from_db()
    return run
