"""The second step of a pass: compare both sides, with a verdict for each object."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sync import reconcile
from sync.passes.read import manifest_of
from sync.values import READ_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sync.models import SyncedObject
    from sync.passes.read import Ownership, Stored
    from sync.values import ObjectKey

    Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedObject:
    """One object of a pass: both sides, what was agreed on, and what follows.

    ``live`` is what the API server gave; ``ours_normal``, ``theirs`` and ``base`` are in normal
    form. None stands for "is not there" everywhere.
    """

    key: ObjectKey
    ours: Stored | None
    ours_normal: Manifest | None
    live: Manifest | None
    theirs: Manifest | None
    base: Manifest | None
    row: SyncedObject | None
    owned: bool
    verdict: reconcile.DiffVerdict

    @property
    def agrees(self) -> bool:
        """Whether both sides are the same by value."""
        if self.ours_normal is None or self.theirs is None:
            return self.ours_normal is self.theirs
        return not reconcile.differences(self.ours_normal, self.theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What is compared: everything of the portal and of a cluster, or a part of it, by key."""

    ours: Mapping[ObjectKey, Stored]
    live: Mapping[ObjectKey, Manifest]
    rows: Mapping[ObjectKey, SyncedObject]
    ownership: Ownership


def judge_all(sides: Sides, *, kinds: Collection[str]) -> list[ComparedObject]:
    """Judge every object of the kinds that either side has, or had, in the order of their keys."""
    keys = sides.ours.keys() | sides.live.keys() | sides.rows.keys()
    return [judge(sides, key) for key in sorted(keys) if key.kind in kinds]


def judge(sides: Sides, key: ObjectKey) -> ComparedObject:
    """Judge one object."""
    row = sides.rows.get(key)
    return judge_one(
        key,
        ours=sides.ours.get(key),
        live=sides.live.get(key),
        row=row,
        base=row.base if row else None,
        owned=sides.ownership.covers(key),
    )


def judge_one(  # noqa: PLR0913 - the sides of one comparison
    key: ObjectKey,
    *,
    ours: Stored | None,
    live: Manifest | None,
    row: SyncedObject | None,
    base: Manifest | None,
    owned: bool,
) -> ComparedObject:
    """Judge an object by its sides; ``base`` may be another one than the row's."""
    is_read = key.kind in READ_KINDS
    normal = manifest_of if is_read else reconcile.normal
    ours_normal = normal(ours.manifest) if ours else None
    theirs = normal(live) if live else None
    verdict = (
        _judge_followed(base, ours_normal, theirs)
        if is_read
        else _judge_shared(
            base, ours_normal, theirs, owned=owned, is_another=_is_another(row, live)
        )
    )
    return ComparedObject(
        key=key,
        ours=ours,
        ours_normal=ours_normal,
        live=live,
        theirs=theirs,
        base=base,
        row=row,
        owned=owned,
        verdict=verdict,
    )


def _is_another(row: SyncedObject | None, live: Manifest | None) -> bool:
    """Whether the cluster's object is not the one that was agreed on, but one of the same name."""
    if row is None or not row.object_uid or live is None:
        return False
    return bool(live["metadata"].get("uid") != row.object_uid)


def _judge_shared(
    base: Manifest | None,
    ours: Manifest | None,
    theirs: Manifest | None,
    *,
    owned: bool,
    is_another: bool,
) -> reconcile.DiffVerdict:
    """Judge what both sides may write; drift is only shown, until somebody decides on it.

    What is new in the cluster was never ours, and is taken in. Whoever made an object anew, however
    equal, did not know of our deletion: that is a conflict, too.
    """
    # A base may have been written by another version, whose normal form was not ours.
    agreed = None if base is None else reconcile.normal(base)
    verdict = reconcile.judge_normal(agreed, ours, theirs, owned=owned)
    if is_another and verdict.action == "delete":
        return replace(verdict, state="conflict", action="conflict")
    is_drift = verdict.state == "drifted" and base is not None
    return replace(verdict, action="none") if is_drift else verdict


def _judge_followed(
    base: Manifest | None, ours: Manifest | None, theirs: Manifest | None
) -> reconcile.DiffVerdict:
    """Judge what only the cluster decides on; what it never had is the portal's own affair."""
    if ours == theirs:
        return reconcile.DiffVerdict("in-sync", "none", ())
    if theirs is None:
        return reconcile.DiffVerdict("unowned", "forget" if base is not None else "none", ())
    return reconcile.DiffVerdict("unowned", "take-in", ())


def deletions(items: Iterable[ComparedObject]) -> list[ComparedObject]:
    """Pick what would delete something in the cluster."""
    return [item for item in items if item.verdict.action == "delete"]
