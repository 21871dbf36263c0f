"""``apply_list`` of LiveObjects to the charges: vanished, corrected, added; opening balances.

An object on the list is charged what it uses, never less; the charges of an object that was seen
before and is not any more are released. An object that was never seen keeps its reservation until
its lease ends (``release.release_orphans``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import transaction

from engine.quantity import ZERO
from engine.resource_list import add, parse, remove_zeros, stored
from policies.ledger.arithmetic import corrected, same_amounts
from policies.ledger.book import CONFIRMED, OPENING_RESOURCE, OPENING_UID, RELEASED
from policies.ledger.namespace_ledger import in_namespace
from policies.ledger.recount import OPEN_STATES
from policies.ledger.release import LIST_MARGIN
from policies.ledger.rows import LedgerCause
from policies.models import Charge, LedgerEntry

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from engine.resource_list import ResourceList
    from policies.ledger.namespace_ledger import Guard, NamespaceLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveObject:
    """An object on a list: what each quota counts of it, by quota uid; None if unknown.

    ``is_final``: no admitted update can raise its usage any more.
    """

    name: str
    namespace: str
    counted: Mapping[UUID, ResourceList] | None
    is_final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteList:
    """All objects of one resource of a cluster, by uid.

    ``started`` is what ``read_clock`` returned before the list was requested. By quota uid,
    ``places`` are the namespaces, ``names`` the names under which such objects count, and
    ``observed`` the used amounts that the cluster itself reports, where these are decisive.
    """

    cluster_id: int
    resource: str
    started: dt.datetime
    objects: Mapping[str, LiveObject]
    places: Mapping[UUID, str] = field(default_factory=dict)
    names: Mapping[UUID, tuple[str, ...]] = field(default_factory=dict)
    observed: Mapping[UUID, ResourceList] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class LedgerChanges:
    """Counts of charges; ``vanished`` are those of objects that disappeared from the list.

    ``recheck``: uids of objects that were seen with less than they are charged, while an admitted
    update may be under way; and the time from which seeing them again can lower their charges.
    """

    confirmed: int = 0
    added: int = 0
    corrected: int = 0
    released: int = 0
    vanished: int = 0
    known: int = 0
    recheck: dict[str, dt.datetime] = field(default_factory=dict)


def count_vanished(seen: CompleteList) -> LedgerChanges:
    """Count the confirmed charges, and those of them whose objects are not on the list."""
    met = LedgerChanges()
    for charge in _open_charges(seen):
        # A reserved object was never seen, so it cannot have vanished.
        if charge.state == CONFIRMED:
            met.known += 1
            met.vanished += _has_vanished(charge, seen)
    return met


def apply_list(
    seen: CompleteList,
    *,
    believe: bool,
    guard: Guard = transaction.atomic,
) -> LedgerChanges:
    """Bring the ledger in line with a list; one short transaction for each changed namespace.

    ``believe``: release vanished objects, too. A caller that does not trust one list alone calls
    again with the next one. ``guard`` begins each transaction, or raises.
    """
    met = count_vanished(seen)
    # One transaction each: admissions to other namespaces do not wait.
    for namespace in sorted(_with_news(seen, believe=believe)):
        found = in_namespace(
            (seen.cluster_id, namespace),
            lambda ledger: _NamespaceComparison(seen, ledger, believe=believe).hold(),
            cause=LedgerCause(LedgerEntry.Cause.LIST),
            guard=guard,
        )
        met.added += found.added
        met.corrected += found.corrected
        met.released += found.released
    return met


def too_early(seen: CompleteList) -> set[str]:
    """Find the objects whose charges are too high, and were updated too lately to be lowered."""
    recent = _open_charges(seen, updated__gte=seen.started - LIST_MARGIN)
    return {charge.object_uid for charge in recent if _is_too_early(charge, seen)}


def _open_charges(seen: CompleteList, **which: object) -> Iterable[Charge]:
    open_charges = Charge.objects.filter(
        cluster_id=seen.cluster_id, resource=seen.resource, state__in=OPEN_STATES, **which
    )
    return open_charges.order_by("id").iterator()


def _has_vanished(charge: Charge, seen: CompleteList) -> bool:
    # A charge written since the list began may belong to an object that is too new for it.
    return charge.object_uid not in seen.objects and charge.updated < seen.started


def _is_there(charge: Charge, seen: CompleteList) -> bool:
    """Whether the object was seen, now or before; else the cluster does not count it yet."""
    return charge.state == CONFIRMED or charge.object_uid in seen.objects


def _wanted_amounts(charge: Charge, seen: CompleteList) -> ResourceList | None:
    """The right amounts of a charge; None for an object that is not on the list.

    They grow at once, and shrink only where no admitted update can be under way. Names that the
    quota does not bound now stay as they are: it may bound them again.
    """
    # Absence is judged elsewhere, since one list alone may be wrong.
    live = seen.objects.get(charge.object_uid)
    if live is None:
        return None
    held = parse(charge.amounts)
    if live.counted is None:
        return held
    names, counted = seen.names.get(charge.quota_uid, ()), live.counted.get(charge.quota_uid, {})
    return corrected(held, counted, names=names, lowers=_is_certain(charge, live, seen))


def _is_certain(charge: Charge, live: LiveObject, seen: CompleteList) -> bool:
    """Whether no update is under way: one admitted shortly before the list may be missing on it."""
    latest_update = seen.started if live.is_final else seen.started - LIST_MARGIN
    return charge.updated < latest_update


def _is_too_early(charge: Charge, seen: CompleteList) -> bool:
    """Whether a charge is more than its object counts, and may not be lowered yet."""
    live = seen.objects.get(charge.object_uid)
    if live is None or live.counted is None or _is_certain(charge, live, seen):
        return False
    names, counted = seen.names.get(charge.quota_uid, ()), live.counted.get(charge.quota_uid, {})
    held = parse(charge.amounts)
    lowered, kept = (
        corrected(held, counted, names=names, lowers=lowers) for lowers in (True, False)
    )
    return not same_amounts(lowered, kept)


def _is_news(charge: Charge, seen: CompleteList, *, believe: bool) -> bool:
    wanted_amounts = _wanted_amounts(charge, seen)
    if wanted_amounts is None:
        return believe and charge.state == CONFIRMED and _has_vanished(charge, seen)
    return not same_amounts(wanted_amounts, parse(charge.amounts))


def _opening_wanted(
    seen: CompleteList, quota_uid: UUID, opening: ResourceList, confirmed: ResourceList
) -> ResourceList:
    """The rest of the opening balance once each object is charged itself.

    Nothing; or, where the cluster's own figure is decisive, its excess over the charges.
    """
    observed_amounts = seen.observed.get(quota_uid, {})
    opening_left = dict(opening)
    for name in seen.names.get(quota_uid, ()):
        unexplained = observed_amounts.get(name, ZERO) - confirmed.get(name, ZERO)
        opening_left[name] = unexplained if unexplained.sign > 0 else ZERO
    return stored(remove_zeros(opening_left))


def _openings(seen: CompleteList, **which: object) -> dict[UUID, Charge]:
    opening_charges = Charge.objects.filter(
        cluster_id=seen.cluster_id, resource=OPENING_RESOURCE, object_uid=OPENING_UID, **which
    )
    return {opening_charge.quota_uid: opening_charge for opening_charge in opening_charges}


def _with_news(seen: CompleteList, *, believe: bool) -> set[str]:
    """Find the namespaces where anything has to be written, without a lock."""
    namespaces_with_news: set[str] = set()
    charged_pairs: set[tuple[UUID, str]] = set()
    confirmed: dict[UUID, ResourceList] = defaultdict(dict)
    for charge in _open_charges(seen):
        charged_pairs.add((charge.quota_uid, charge.object_uid))
        if _is_there(charge, seen):
            confirmed[charge.quota_uid] = add(confirmed[charge.quota_uid], parse(charge.amounts))
        if _is_news(charge, seen, believe=believe):
            namespaces_with_news.add(charge.namespace)
    for uid, live in seen.objects.items():
        if any((quota_uid, uid) not in charged_pairs for quota_uid in live.counted or ()):
            namespaces_with_news.add(live.namespace)
    openings = _openings(seen)
    for quota_uid, namespace in seen.places.items():
        opening_charge = openings.get(quota_uid)
        held = parse(opening_charge.amounts) if opening_charge else {}
        if not same_amounts(_opening_wanted(seen, quota_uid, held, confirmed[quota_uid]), held):
            namespaces_with_news.add(namespace)
    return namespaces_with_news


class _NamespaceComparison:
    """The comparison of one namespace, its quotas locked."""

    def __init__(self, seen: CompleteList, ledger: NamespaceLedger, *, believe: bool) -> None:
        self.seen, self.ledger, self.believe = seen, ledger, believe
        self.confirmed: dict[UUID, ResourceList] = defaultdict(dict)
        self.charged_pairs: set[tuple[UUID, str]] = set()
        self.met = LedgerChanges()

    def hold(self) -> LedgerChanges:
        """Correct, release and add charges, then set the opening balances."""
        # Read again under the lock: the charges may have changed since the search without it.
        for charge in list(_open_charges(self.seen, namespace=self.ledger.namespace)):
            self.charged_pairs.add((charge.quota_uid, charge.object_uid))
            if charge.quota_uid in self.ledger.quotas:
                self._correct(charge)
        self._add()
        self._set_openings()
        return self.met

    def _correct(self, charge: Charge) -> None:
        wanted = _wanted_amounts(charge, self.seen)
        if _is_news(charge, self.seen, believe=self.believe):
            if wanted is None:
                self.met.released += self.ledger.release([charge])
                return
            # An empty charge has nothing to confirm or to release later.
            state = charge.state if remove_zeros(wanted) else RELEASED
            self.met.corrected += self.ledger.resize(charge, wanted, state=state)
        if _is_there(charge, self.seen):
            self._count(charge.quota_uid, parse(charge.amounts) if wanted is None else wanted)

    def _count(self, quota_uid: UUID, amounts: ResourceList) -> None:
        self.confirmed[quota_uid] = add(self.confirmed[quota_uid], amounts)

    def _add(self) -> None:
        """Charge objects without a charge: older than the portal, or admitted without it.

        An object whose charge was released by mistake is charged again in the same way.
        """
        for uid, live in self.seen.objects.items():
            counted = live.counted if live.namespace == self.ledger.namespace else None
            for quota_uid, amounts in (counted or {}).items():
                is_charged = (quota_uid, uid) in self.charged_pairs
                if quota_uid in self.ledger.quotas and not is_charged:
                    self.ledger.add(quota_uid, self.seen.resource, uid, live.name, amounts)
                    self._count(quota_uid, amounts)
                    self.met.added += 1

    def _set_openings(self) -> None:
        """Set the opening balances to the usage that no object explains."""
        opening_charges = _openings(self.seen, namespace=self.ledger.namespace)
        for quota_uid in self.ledger.quotas:
            opening_charge = opening_charges.get(quota_uid)
            held = parse(opening_charge.amounts) if opening_charge else {}
            wanted = _opening_wanted(self.seen, quota_uid, held, self.confirmed[quota_uid])
            if not same_amounts(wanted, held):
                self.ledger.set_opening(quota_uid, held, wanted)
