"""Book of one transaction: Quotas locked, charges made in memory, unconfirmed capped, written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast
from uuid import UUID

import orjson
from django.db import transaction

from engine.quantity import ZERO
from engine.resource_list import mask, parse, subtract
from policies.db.deferred import is_in_transaction, is_postgresql
from policies.ledger import postgresql, sqlite
from policies.ledger.arithmetic import as_stored, entry_of, grown, moved, without_surplus
from policies.ledger.rows import NewCharge, NewUsage, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from engine.decision import Charge as DecidedCharge
    from engine.resource_list import ResourceList
    from policies.ledger.rows import FoundCharge, Key, Statements, UsageRow

RESERVED: Final = "reserved"
CONFIRMED: Final = "confirmed"
RELEASED: Final = "released"
OPENING_RESOURCE: Final = "resourcequotas/status"
OPENING_UID: Final = "opening-balance"
OPENING_NAME: Final = "opening balance"
LONGEST_NAME: Final = 253
NOTHING: Final = "{}"
_ADMISSION: Final = "admission"


def statements() -> Statements:
    """The statements for this database."""
    statements_module = postgresql if is_postgresql() else sqlite
    return cast("Statements", statements_module)


def stored_uid(uid: UUID) -> str:
    """A uid as this database writes it."""
    return str(uid) if is_postgresql() else uid.hex


def require_transaction() -> None:
    """Raise outside of a transaction, where a lock would end with its statement."""
    if not is_in_transaction():
        raise transaction.TransactionManagementError("the ledger is read inside of a transaction")


class Quota:
    """One quota's numbers; ``used`` is replaced, never changed: callers hold references to it."""

    __slots__ = ("changed", "cluster_id", "id", "namespace", "uid", "used")

    def __init__(self, usage_row: UsageRow) -> None:
        self.id, self.cluster_id, self.uid, self.namespace = usage_row[:4]
        self.used: ResourceList = parse(orjson.loads(usage_row.used))
        self.changed = False

    def move(self, held: ResourceList, wanted: ResourceList) -> None:
        """Count an object with its new amounts instead of its old ones."""
        moved_used = moved(self.used, held, wanted)
        if moved_used is not self.used:
            self.used, self.changed = moved_used, True

    def grow_to(self, total: ResourceList) -> None:
        """Set used amounts that a decision has added up already."""
        self.used, self.changed = total, True

    def row(self) -> NewUsage:
        """The row to write."""
        return NewUsage(self.cluster_id, self.id, text_of(self.used))


class _Charge:
    """The charge of one object to one quota."""

    __slots__ = (
        "amounts",
        "before",
        "changed",
        "key",
        "name",
        "quota",
        "reference",
        "state",
        "text",
    )

    def __init__(self, quota: Quota, key: Key, charge_row: FoundCharge | None = None) -> None:
        self.quota, self.key = quota, key
        self.name = charge_row.object_name if charge_row else ""
        self.amounts: ResourceList = parse(orjson.loads(charge_row.amounts)) if charge_row else {}
        self.text: str | None = None  # the amounts as JSON, where it is known
        self.state = charge_row.state if charge_row else RESERVED
        is_held = charge_row is not None and charge_row.state != RELEASED
        self.before = charge_row.amounts if charge_row and is_held else NOTHING  # when last written
        self.reference = ""  # the decision that charged it last
        self.changed = False

    @property
    def held(self) -> ResourceList:
        """The amounts that count now."""
        return {} if self.state == RELEASED else self.amounts

    def row(self) -> NewCharge:
        cluster_id, resource, uid = self.key
        quota_place = (cluster_id, self.quota.uid, self.quota.namespace)
        amounts_text = self.text = self.text or text_of(self.amounts)
        stored_columns = (resource, uid, self.name, amounts_text, self.state)
        action = "opening" if resource == OPENING_RESOURCE else "charge"
        entry_columns = (self.before, action, _ADMISSION, self.reference)
        return NewCharge(*quota_place, *stored_columns, *entry_columns)

    def note_written(self) -> None:
        """Begin anew: the next row is a change of this one."""
        self.before, self.changed = self.text or text_of(self.amounts), False

    def hold(self, amounts: ResourceList, amounts_text: str | None = None) -> None:
        """Replace the amounts."""
        self.amounts, self.text = amounts, amounts_text


class Book:
    """Used amounts of some quotas and charges of some objects, under lock.

    Everything happens in memory until ``write``: the next decision of a batch sees each charge. One
    thread uses a book inside of one transaction. Amounts are exact; ``used`` has only the tracked
    names of a quota's ``hard``. ``openings`` maps the ids of quotas to the charge of their opening
    balance, if there is one; ``unconfirmed`` cluster id and namespace to the number of objects that
    are only reserved.
    """

    def __init__(
        self,
        usage_rows: Iterable[UsageRow],
        charge_rows: Iterable[FoundCharge],
        openings: Mapping[int, FoundCharge | None] | None = None,
        unconfirmed: Mapping[tuple[int, str], int] | None = None,
    ) -> None:
        self._statements = statements()
        self._quotas = {row.quota_id: Quota(row) for row in usage_rows}
        quotas_by_uid = {quota.uid: quota for quota in self._quotas.values()}
        self._charges: dict[tuple[int, Key], _Charge] = {}
        self._charged_objects: set[Key] = set()
        self._reserved: set[Key] = set()
        self._unconfirmed = Counter(unconfirmed or {})
        self._added_reserved: Counter[tuple[int, str]] = Counter()
        for charge_row in charge_rows:
            self._note(charge_row[:3], charge_row.state)
            quota = quotas_by_uid.get(charge_row.quota_uid)
            if quota is not None and quota.cluster_id == charge_row.cluster_id:
                charge = _Charge(quota, charge_row[:3], charge_row)
                self._charges[quota.id, charge.key] = charge
        self._openings = {
            quota_id: None if row is None else _Charge(self._quotas[quota_id], row[:3], row)
            for quota_id, row in (openings or {}).items()
        }

    def _note(self, key: Key, state: str) -> None:
        """Remember which objects are charged, and which of them are only reserved."""
        if state != RELEASED:
            self._charged_objects.add(key)
        if state == RESERVED:
            self._reserved.add(key)

    def has(self, quota_id: int) -> bool:
        """Whether the quota still exists, in a cluster of the objects."""
        return quota_id in self._quotas

    def used(self, quota_id: int, key: Key, before: ResourceList) -> ResourceList:
        """The quota's used amounts without what this object is charged already.

        ``before`` is what the quota counted of the object before an update, empty for a create.
        Do not change the result. Raises KeyError without the quota.
        """
        quota = self._quotas[quota_id]
        charge = self._charges.get((quota_id, key))
        if charge is None:
            return quota.used
        return without_surplus(quota.used, charge.held, before)

    def charge(  # noqa: PLR0913 - most by name
        self,
        quota_id: int,
        key: Key,
        *,
        name: str,
        decided: DecidedCharge,
        total: ResourceList | None = None,
        decision: str = "",
    ) -> None:
        """Charge what an allowed request costs. Raises KeyError without the quota.

        Amounts of an object only grow here: an admitted update may still fail, so they shrink when
        the object is seen smaller, or gone. A repeated charge changes only the time of the
        reservation. ``total`` is the quota's usage afterwards, where the decision has added it up;
        ``decision`` is its id, for the journal: one entry for all changes of a charge in one write.
        """
        quota = self._quotas[quota_id]
        if quota.cluster_id != key[0]:
            raise KeyError(quota_id)
        charge, amounts_text = self._charges.get((quota_id, key)), None
        if charge is None:
            charge = self._charges[quota_id, key] = _Charge(quota, key)
            wanted, amounts_text, before, is_all_new = entry_of(decided)
            held = self._take_from_opening_balance(quota, before, decision)
        else:
            held, wanted, is_all_new = charge.held, grown(charge.held, decided), False
        # The decision's sum is right only if no other name counts and nothing was moved.
        if is_all_new and total is not None and total.keys() == quota.used.keys():
            quota.grow_to(total)
        else:
            quota.move(held, wanted)
        was_confirmed = charge.state == CONFIRMED
        # Growth into amounts that the object holds already is written, too: its new time says that
        # an update is under way, so that the amounts do not shrink meanwhile.
        is_growth = any(amount.nano for amount in decided.delta.values())
        charge.changed |= not was_confirmed or is_growth or wanted != charge.amounts
        charge.hold(wanted, amounts_text)
        charge.name, charge.reference = name[:LONGEST_NAME], decision
        # A confirmed charge stays confirmed: the object exists, whatever becomes of this update.
        if not was_confirmed:
            charge.state = RESERVED
            self._added_reserved[quota.cluster_id, quota.namespace] += key not in self._reserved
        self._note(key, charge.state)

    def _take_from_opening_balance(
        self, quota: Quota, before: ResourceList, decision: str
    ) -> ResourceList:
        """Move an object's usage before its first charge out of the opening balance.

        Returns what was moved. Without a balance the object's whole usage is newly counted. Raises
        KeyError where the balance was not read.
        """
        opening = self._openings[quota.id] if before else None
        if opening is None:
            return {}
        balance = opening.amounts
        taken = {name: min(balance.get(name, ZERO), amount) for name, amount in before.items()}
        opening.hold(as_stored(subtract(balance, mask(taken, balance))))
        opening.changed, opening.reference = True, decision
        return taken

    def over_cap(
        self, cluster_id: int, namespace: str, unconfirmed_limit: int, *, key: Key | None = None
    ) -> bool:
        """Whether a namespace has too many objects that wait for their confirmation.

        ``unconfirmed_limit`` is how many may wait; 0: any number. ``key`` is the object in
        question: if it is charged already, it needs no room. Writers without a common quota do not
        see each other's last reservations.
        """
        # A retried or updated object holds its place already.
        if not unconfirmed_limit or key in self._charged_objects:
            return False
        place = (cluster_id, namespace)
        return self._unconfirmed[place] + self._added_reserved[place] >= unconfirmed_limit

    def write(self) -> None:
        """Write what changed since it was read or last written; no statement without a change."""
        changed_quotas = [quota for quota in self._quotas.values() if quota.changed]
        all_charges = (*self._charges.values(), *filter(None, self._openings.values()))
        changed_charges = [charge for charge in all_charges if charge.changed]
        if not changed_charges:
            return
        self._statements.write(
            [quota.row() for quota in changed_quotas], [charge.row() for charge in changed_charges]
        )
        for quota in changed_quotas:
            quota.changed = False
        for charge in changed_charges:
            charge.note_written()
        self._unconfirmed += self._added_reserved
        self._added_reserved.clear()


def lock_namespace(cluster_id: int, namespace: str) -> dict[UUID, Quota]:
    """Lock the usage of a namespace's quotas, in id order; returns them by uid."""
    usage_rows = statements().lock_namespace(cluster_id, namespace)
    # Databases write UUIDs with dashes or without them.
    return {UUID(str(usage_row.quota_uid)): Quota(usage_row) for usage_row in usage_rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerNeeds:
    """What decisions of one transaction read of the ledger.

    ``objects`` are all that will be decided or charged; only quotas of their clusters are found.
    ``grown`` are the quotas that may have counted an object before, and so may have it in their
    opening balance. ``places`` maps cluster id and namespace to how many objects may wait there.
    """

    quota_ids: Collection[int] = ()
    objects: Collection[Key] = ()
    grown: Collection[int] = ()
    places: Mapping[tuple[int, str], int] = field(default_factory=dict)


def open_book(
    quota_ids: Collection[int],
    objects: Collection[Key],
    *,
    grown: Collection[int] = (),
    places: Mapping[tuple[int, str], int] | None = None,
) -> Book:
    """Lock the usage of some quotas, in id order, then read the charges of some objects.

    Must run inside of ``atomic``. Two statements at least: one alone that waited for a lock would
    read the charges as of before its wait.
    """
    needs = LedgerNeeds(quota_ids=quota_ids, objects=objects, grown=grown, places=places or {})
    return ask_book(needs)()


def ask_book(needs: LedgerNeeds, *, waits: bool = True) -> Callable[[], Book]:
    """Send the statements of ``open_book``; the result waits for their rows and makes the book.

    With ``waits`` off, the book lacks quotas that another transaction has locked.
    """
    require_transaction()
    quota_ids, cluster_ids = set(needs.quota_ids), {key[0] for key in needs.objects}
    if not quota_ids or not cluster_ids:
        return lambda: Book((), ())
    all_of = statements()
    usage_rows = all_of.lock(cluster_ids, quota_ids, waits=waits)
    charge_rows = all_of.charges_of(set(needs.objects))
    opening_rows: Callable[[], list[FoundCharge]] = list
    if grown := set(needs.grown):
        opening_rows = all_of.charges_by(cluster_ids, grown, OPENING_RESOURCE, OPENING_UID)
    counted = {
        place: all_of.count_unconfirmed(*place, limit) for place, limit in needs.places.items()
    }

    def book() -> Book:
        usage, charges = usage_rows(), charge_rows()
        openings = {row.quota_uid: row for row in opening_rows()}
        return Book(
            usage,
            charges,
            {row.quota_id: openings.get(row.quota_uid) for row in usage if row.quota_id in grown},
            {place: count() for place, count in counted.items()},
        )

    return book
