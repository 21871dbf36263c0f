"""SyncedObject rows remembered: base, theirs, live, differences with managers, since, gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count

from sync import reconcile
from sync.models import SyncedObject
from sync.values import READ_KINDS, ObjectKey

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable, Mapping

    from policies.models import Cluster
    from sync.passes.compare import ComparedObject

State = SyncedObject.State
ROWS_AT_ONCE: Final = 500
"""Rows in one statement."""


def seen_since(
    cluster: Cluster, keys: Collection[ObjectKey], read: dt.datetime
) -> frozenset[ObjectKey]:
    """The objects of which something newer is stored than what was read at ``read``.

    The follower and a pass may work on a cluster at once: the older knowledge yields.
    """
    newer = SyncedObject.objects.filter(
        cluster=cluster, name__in={key.name for key in keys}, seen__gt=read
    )
    places = newer.values_list("kind", "namespace", "name")
    return frozenset(keys) & {ObjectKey(*place) for place in places}


def names(key: ObjectKey) -> dict[str, str]:
    """The columns that identify an object."""
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name}


def differences_of(compared: ComparedObject) -> list[dict[str, Any]]:
    """All fields in which the sides differ: ``{field, base, ours, theirs, manager, time}``.

    If one side has no object, the only entry is the whole object, with the field "".
    """
    ours, theirs, base = compared.ours_normal, compared.theirs, compared.base
    if ours is None and theirs is None:
        return []
    if ours is None or theirs is None:
        manifests = {"base": base, "ours": ours, "theirs": theirs}
        presence = {side: None if value is None else "(there)" for side, value in manifests.items()}
        return [{"field": "", **presence, "manager": "", "time": ""}]
    if compared.key.kind in READ_KINDS:
        return []
    was = {} if base is None else {one.field: one.a for one in reconcile.differences(base, theirs)}
    if base is not None:
        was |= {one.field: one.a for one in reconcile.differences(base, ours)}
    managed_fields = reconcile.managers(compared.live) if compared.live else {}
    return [
        {
            "field": difference.field,
            "base": was.get(difference.field),
            "ours": difference.a,
            "theirs": difference.b,
            **_manager_of_field(managed_fields, difference.field),
        }
        for difference in reconcile.differences(ours, theirs)
    ]


def _manager_of_field(managed_fields: Mapping[str, Any], field: str) -> dict[str, str]:
    """The manager of a field, or of its nearest parent that has one."""
    # Atomic lists and maps are owned as a whole, so that their entries have no manager.
    path = field
    while path and path not in managed_fields:
        path = path[: max(path.rfind("."), path.rfind("["))] if "." in path[1:] else ""
    manager, time = managed_fields.get(path, ("", ""))
    return {"manager": manager, "time": str(time or "")}


def next_base(compared: ComparedObject) -> dict[str, Any] | None:
    """The next baseline: the manifest in which both sides agree, else the former one."""
    if compared.key.kind in READ_KINDS or compared.agrees:
        return compared.theirs
    return compared.base


def columns_of(compared: ComparedObject, now: dt.datetime, state: str = "") -> dict[str, Any]:
    """The next values of an object's row; its state is the verdict's unless given."""
    synced_row, metadata = compared.row, (compared.live or {}).get("metadata") or {}
    state = state or compared.verdict.state
    is_gone = compared.ours is None and compared.live is None
    state_stays = synced_row is not None and synced_row.state == state and synced_row.gone is None
    live_uid, agreed_uid = metadata.get("uid") or "", synced_row.object_uid if synced_row else ""
    # In conflict, the uid of the agreed object stays: it shows that another one has its name.
    keeps_agreed_uid = agreed_uid and (state == State.CONFLICT or not live_uid)
    return {
        "object_uid": agreed_uid if keeps_agreed_uid else live_uid,
        "resource_version": metadata.get("resourceVersion") or "",
        "base": next_base(compared),
        "theirs": compared.theirs,
        "live": compared.live,
        "state": state,
        "differences": differences_of(compared),
        "since": synced_row.since if synced_row is not None and state_stays else now,
        "seen": now,
        "gone": (synced_row.gone if synced_row and synced_row.gone else now) if is_gone else None,
    }


def remember(
    cluster: Cluster, objects: Iterable[ComparedObject], *, now: dt.datetime, state: str = ""
) -> int:
    """Write the rows of objects that changed, in the caller's ``guard``; returns their number."""
    new_rows: list[SyncedObject] = []
    remembered = 0
    for item in objects:
        # Namespaces and classes that the cluster never had are the portal's own affair.
        if item.row is None and item.live is None and item.key.kind in READ_KINDS:
            continue
        columns = columns_of(item, now, state)
        if item.row is None:
            new_rows.append(SyncedObject(cluster=cluster, **names(item.key), **columns))
        elif any(getattr(item.row, name) != columns[name] for name in columns if name != "seen"):
            # The version: a person's resolution since the read wins, and the next pass follows it.
            # The time: what the follower saw since is newer than the list of a pass.
            unresolved_since = SyncedObject.objects.filter(
                pk=item.row.pk, version=item.row.version, seen__lte=now
            )
            remembered += unresolved_since.update(**columns)
    # The follower may have seen a new object since the list of a pass: its row is newer.
    known = read_keys(cluster, {row.name for row in new_rows})
    unknown_rows = [row for row in new_rows if row.key not in known]
    SyncedObject.objects.bulk_create(unknown_rows, batch_size=ROWS_AT_ONCE)
    return remembered + len(unknown_rows)


def read_keys(cluster: Cluster, names: Collection[str]) -> frozenset[ObjectKey]:
    """The keys of the rows with one of these names."""
    rows = SyncedObject.objects.filter(cluster=cluster, name__in=names)
    places = rows.values_list("kind", "namespace", "name") if names else ()
    return frozenset(ObjectKey(*place) for place in places)


def count_states(cluster: Cluster) -> dict[str, int]:
    """Count a cluster's objects by state, without tombstones."""
    present_rows = SyncedObject.objects.filter(cluster=cluster, gone=None).order_by()
    return dict(present_rows.values_list("state").annotate(Count("id")))
