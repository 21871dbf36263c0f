"""ComparedObject and Sides, step two: ours, live, base, row normalized; verdict per object."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from policies.managed_fields import normal
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
    """One object of a pass: both sides, the baseline and the verdict.

    ``live`` is the API server's manifest; ``ours_normal``, ``theirs`` and ``base`` are in normal
    form. None stands for an absent object.
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
    """The sides to compare, by key: all objects of the portal and of a cluster, or some."""

    ours: Mapping[ObjectKey, Stored]
    live: Mapping[ObjectKey, Manifest]
    rows: Mapping[ObjectKey, SyncedObject]
    ownership: Ownership


def judge_all(sides: Sides, *, kinds: Collection[str]) -> list[ComparedObject]:
    """Judge all objects of some kinds that a side has or had, in the order of their keys."""
    all_keys = sides.ours.keys() | sides.live.keys() | sides.rows.keys()
    return [judge(sides, key) for key in sorted(all_keys) if key.kind in kinds]


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
    """Judge one object by its sides; ``base`` may differ from the row's."""
    is_read = key.kind in READ_KINDS
    normalize = manifest_of if is_read else normal
    ours_normal = normalize(ours.manifest) if ours else None
    theirs = normalize(live) if live else None
    judged = (
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
        verdict=judged,
    )


def _is_another(row: SyncedObject | None, live: Manifest | None) -> bool:
    """Whether the cluster's object is another one of the same name than the agreed one."""
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
    """Judge an object of a kind that both sides may write."""
    # Another version of the portal, with another normal form, may have written the base.
    agreed_base = None if base is None else normal(base)
    shared_verdict = reconcile.judge_normal(agreed_base, ours, theirs, owned=owned)
    # Whoever created the object again did not know of our deletion, even if it looks equal.
    if is_another and shared_verdict.action == "delete":
        return replace(shared_verdict, state="conflict", action="conflict")
    # Drift waits for a person's resolution; an object without a base is new, and is imported.
    is_drift = shared_verdict.state == "drifted" and base is not None
    return replace(shared_verdict, action="none") if is_drift else shared_verdict


def _judge_followed(
    base: Manifest | None, ours: Manifest | None, theirs: Manifest | None
) -> reconcile.DiffVerdict:
    """Judge an object of a kind that follows the cluster."""
    if ours == theirs:
        return reconcile.DiffVerdict("in-sync", "none", ())
    if theirs is None:
        # Without a base the cluster never had it: the portal made it for itself.
        return reconcile.DiffVerdict("unowned", "forget" if base is not None else "none", ())
    return reconcile.DiffVerdict("unowned", "import", ())


def deletions(compared_objects: Iterable[ComparedObject]) -> list[ComparedObject]:
    """The objects that the pass would delete in the cluster."""
    return [compared for compared in compared_objects if compared.verdict.action == "delete"]
