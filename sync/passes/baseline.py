"""The baseline of each object: the last agreed manifest, the cluster's side, the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count

from sync import reconcile
from sync.models import SyncedObject
from sync.values import READ_KINDS

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

    from policies.models import Cluster
    from sync.passes.compare import ComparedObject
    from sync.values import ObjectKey

State = SyncedObject.State
CHUNK: Final = 500
"""Rows written in one transaction."""


def names(key: ObjectKey) -> dict[str, str]:
    """The columns by which rows name an object."""
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name}


def differences_of(item: ComparedObject) -> list[dict[str, Any]]:
    """All fields in which the sides differ: ``{field, base, ours, theirs, manager, time}``.

    A side that is not there shows as ``{"field": ""}``, the whole object.
    """
    ours, theirs, base = item.ours_normal, item.theirs, item.base
    if ours is None or theirs is None:
        return [] if ours is theirs else [_whole(item)]
    if item.key.kind in READ_KINDS:
        return []
    was = {} if base is None else {one.field: one.a for one in reconcile.differences(base, theirs)}
    if base is not None:
        was |= {one.field: one.a for one in reconcile.differences(base, ours)}
    by_field = reconcile.managers(item.live) if item.live else {}
    return [
        {
            "field": one.field,
            "base": was.get(one.field),
            "ours": one.a,
            "theirs": one.b,
            **_manager(by_field, one.field),
        }
        for one in reconcile.differences(ours, theirs)
    ]


def _whole(item: ComparedObject) -> dict[str, Any]:
    """Say that one side has no such object."""
    sides = {"base": item.base, "ours": item.ours_normal, "theirs": item.theirs}
    there = {side: None if value is None else "(there)" for side, value in sides.items()}
    return {"field": "", **there, "manager": "", "time": ""}


def _manager(by_field: Mapping[str, Any], field: str) -> dict[str, str]:
    """Find who wrote a field: itself, or the longest of its parents that somebody owns."""
    place = field
    while place and place not in by_field:
        place = place[: max(place.rfind("."), place.rfind("["))] if "." in place[1:] else ""
    manager, time = by_field.get(place, ("", ""))
    return {"manager": manager, "time": str(time or "")}


def next_base(item: ComparedObject) -> dict[str, Any] | None:
    """What both sides agree on from now: what they have in common, else what it was."""
    if item.key.kind in READ_KINDS or item.agrees:
        return item.theirs
    return item.base


def columns_of(item: ComparedObject, now: dt.datetime, state: str = "") -> dict[str, Any]:
    """The row of an object as it is to be; its state is the verdict's unless given."""
    row, metadata = item.row, (item.live or {}).get("metadata") or {}
    state = state or item.verdict.state
    is_gone = item.ours is None and item.live is None
    stays = row is not None and row.state == state and row.gone is None
    return {
        "object_uid": _agreed_uid(row, metadata.get("uid") or "", state),
        "resource_version": metadata.get("resourceVersion") or "",
        "base": next_base(item),
        "theirs": item.theirs,
        "live": item.live,
        "state": state,
        "differences": differences_of(item),
        "since": row.since if row is not None and stays else now,
        "seen": now,
        "gone": (row.gone if row and row.gone else now) if is_gone else None,
    }


def _agreed_uid(row: SyncedObject | None, uid: str, state: str) -> str:
    """Which of the cluster's objects of that name is meant: not another one while in conflict."""
    known = row.object_uid if row else ""
    return known if known and (state == State.CONFLICT or not uid) else uid


def remember(
    cluster: Cluster, items: Iterable[ComparedObject], *, now: dt.datetime, state: str = ""
) -> int:
    """Write the rows of objects that changed; inside the caller's ``guard``.

    A row that a person decided on meanwhile is left as it is: the next pass reads it anew. Returns
    how many rows were written.
    """
    new: list[SyncedObject] = []
    written = 0
    for item in items:
        if not _needs_a_row(item):
            continue
        columns = columns_of(item, now, state)
        if item.row is None:
            new.append(SyncedObject(cluster=cluster, **names(item.key), **columns))
        elif _changed(item.row, columns):
            same = SyncedObject.objects.filter(pk=item.row.pk, version=item.row.version)
            written += same.update(**columns)
    SyncedObject.objects.bulk_create(new, batch_size=CHUNK)
    return written + len(new)


def _needs_a_row(item: ComparedObject) -> bool:
    """Leave out what the cluster never had and only follows."""
    is_read = item.key.kind in READ_KINDS
    return item.row is not None or not (is_read and item.live is None)


def _changed(row: SyncedObject, columns: Mapping[str, Any]) -> bool:
    return any(getattr(row, name) != columns[name] for name in columns if name != "seen")


def count_states(cluster: Cluster) -> dict[str, int]:
    """How many objects of a cluster are in which state; tombstones are not counted."""
    rows = SyncedObject.objects.filter(cluster=cluster, gone=None).order_by()
    return dict(rows.values_list("state").annotate(Count("id")))
