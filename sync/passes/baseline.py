"""SyncedObject rows remembered: base, theirs, live, differences with managers, since, gone."""

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
"""Rows in one statement."""


def names(key: ObjectKey) -> dict[str, str]:
    """The columns that identify an object."""
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name}


def differences_of(item: ComparedObject) -> list[dict[str, Any]]:
    """All fields in which the sides differ: ``{field, base, ours, theirs, manager, time}``.

    If one side has no object, the only entry is the whole object, with the field "".
    """
    ours, theirs, base = item.ours_normal, item.theirs, item.base
    if ours is None and theirs is None:
        return []
    if ours is None or theirs is None:
        sides = {"base": base, "ours": ours, "theirs": theirs}
        there = {side: None if value is None else "(there)" for side, value in sides.items()}
        return [{"field": "", **there, "manager": "", "time": ""}]
    if item.key.kind in READ_KINDS:
        return []
    was = {} if base is None else {one.field: one.a for one in reconcile.differences(base, theirs)}
    if base is not None:
        was |= {one.field: one.a for one in reconcile.differences(base, ours)}
    by_field = reconcile.managers(item.live) if item.live else {}
    return [
        {
            "field": difference.field,
            "base": was.get(difference.field),
            "ours": difference.a,
            "theirs": difference.b,
            **_manager_of_field(by_field, difference.field),
        }
        for difference in reconcile.differences(ours, theirs)
    ]


def _manager_of_field(by_field: Mapping[str, Any], field: str) -> dict[str, str]:
    """The manager of a field, or of its nearest parent that has one."""
    # Atomic lists and maps are owned as a whole, so that their entries have no manager.
    place = field
    while place and place not in by_field:
        place = place[: max(place.rfind("."), place.rfind("["))] if "." in place[1:] else ""
    manager, time = by_field.get(place, ("", ""))
    return {"manager": manager, "time": str(time or "")}


def next_base(item: ComparedObject) -> dict[str, Any] | None:
    """The next baseline: the manifest in which both sides agree, else the former one."""
    if item.key.kind in READ_KINDS or item.agrees:
        return item.theirs
    return item.base


def columns_of(item: ComparedObject, now: dt.datetime, state: str = "") -> dict[str, Any]:
    """The next values of an object's row; its state is the verdict's unless given."""
    row, metadata = item.row, (item.live or {}).get("metadata") or {}
    state = state or item.verdict.state
    is_gone = item.ours is None and item.live is None
    stays = row is not None and row.state == state and row.gone is None
    uid, known = metadata.get("uid") or "", row.object_uid if row else ""
    # In conflict, the uid of the agreed object stays: it shows that another one has its name.
    keeps_uid = known and (state == State.CONFLICT or not uid)
    return {
        "object_uid": known if keeps_uid else uid,
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


def remember(
    cluster: Cluster, items: Iterable[ComparedObject], *, now: dt.datetime, state: str = ""
) -> int:
    """Write the rows of objects that changed, in the caller's ``guard``; returns their number."""
    new: list[SyncedObject] = []
    written = 0
    for item in items:
        # Namespaces and classes that the cluster never had are the portal's own affair.
        if item.row is None and item.live is None and item.key.kind in READ_KINDS:
            continue
        columns = columns_of(item, now, state)
        if item.row is None:
            new.append(SyncedObject(cluster=cluster, **names(item.key), **columns))
        elif any(getattr(item.row, name) != columns[name] for name in columns if name != "seen"):
            # The version: a person's resolution since the read wins, and the next pass follows it.
            same = SyncedObject.objects.filter(pk=item.row.pk, version=item.row.version)
            written += same.update(**columns)
    SyncedObject.objects.bulk_create(new, batch_size=CHUNK)
    return written + len(new)


def count_states(cluster: Cluster) -> dict[str, int]:
    """Count a cluster's objects by state, without tombstones."""
    rows = SyncedObject.objects.filter(cluster=cluster, gone=None).order_by()
    return dict(rows.values_list("state").annotate(Count("id")))
