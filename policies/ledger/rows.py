"""UsageRow, FoundCharge, NewUsage, NewCharge, NewEntry, Key, LedgerCause: rows; Statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import orjson

from engine.resource_list import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from engine.request import AdmissionRequest
    from engine.resource_list import ResourceList

Key = tuple[int, str, str]
"""An object: id of its cluster, resource as in ``pods`` or ``deployments.apps``, uid."""


def object_key(request: AdmissionRequest) -> tuple[str, str]:
    """Resource and uid of a request's object; an object without uid has the request's own."""
    object_metadata = (request.object or {}).get("metadata")
    uid = object_metadata.get("uid") if isinstance(object_metadata, dict) else None
    return str(request.resource), uid if type(uid) is str and uid else request.uid


def text_of(amounts: ResourceList) -> str:
    """Amounts as a JSON text."""
    return orjson.dumps(to_json(amounts)).decode()


def json_text(parameter: Any) -> str:
    """A parameter as a JSON text."""
    return orjson.dumps(parameter).decode()


class LedgerCause(NamedTuple):
    """Why a charge changes: a ``LedgerEntry.Cause``, and the decision or user behind it."""

    kind: str
    reference: str = ""


class UsageRow(NamedTuple):
    """One quota's row; ``quota_uid`` as this database writes it, ``used`` a JSON text."""

    quota_id: int
    cluster_id: int
    quota_uid: str
    namespace: str
    used: str


class FoundCharge(NamedTuple):
    """A stored charge; ``amounts`` is a JSON text."""

    cluster_id: int
    resource: str
    object_uid: str
    quota_uid: str
    object_name: str
    amounts: str
    state: str


class NewUsage(NamedTuple):
    """A quota's new used amounts; ``used`` is a JSON text."""

    cluster_id: int
    quota_id: int
    used: str


class NewCharge(NamedTuple):
    """A new or changed charge, and its entry in the journal.

    ``amounts`` is a JSON text, and so is ``before``: the amounts that counted until now.
    """

    cluster_id: int
    quota_uid: str
    namespace: str
    resource: str
    object_uid: str
    object_name: str
    amounts: str
    state: str
    before: str
    action: str
    cause: str
    reference: str


class NewEntry(NamedTuple):
    """An entry of the journal alone; ``before`` and ``after`` are JSON texts."""

    cluster_id: int
    quota_uid: str
    namespace: str
    resource: str
    object_uid: str
    object_name: str
    action: str
    before: str
    after: str
    cause: str
    reference: str


STORED_FIELDS: Final = 8
"""How many of a NewCharge's fields its row has; the rest are its entry's."""


def entry_of_charge(charge: NewCharge) -> NewEntry:
    """The entry of a charge that is written."""
    return NewEntry(
        *charge[:6], charge.action, charge.before, charge.amounts, charge.cause, charge.reference
    )


class Statements(Protocol):
    """The ledger's statements in the SQL of one database; each names the cluster."""

    def lock(
        self, cluster_ids: Collection[int], quota_ids: Collection[int], *, waits: bool
    ) -> Callable[[], list[UsageRow]]:
        """Lock the rows of those quotas in id order, until the transaction ends.

        With ``waits`` off, rows that another transaction has locked are left out.
        """

    def lock_namespace(self, cluster_id: int, namespace: str) -> list[UsageRow]:
        """Lock the rows of all quotas of a namespace in id order."""

    def charges_of(self, objects: Collection[Key]) -> Callable[[], list[FoundCharge]]:
        """Read the charges of some objects, whatever their state."""

    def charges_by(
        self, cluster_ids: Collection[int], quota_ids: Collection[int], resource: str, uid: str
    ) -> Callable[[], list[FoundCharge]]:
        """Read what each of some quotas is charged for one object."""

    def count_unconfirmed(self, cluster_id: int, namespace: str, limit: int) -> Callable[[], int]:
        """Count the objects of a namespace that are only reserved, up to ``limit``."""

    def write(self, usage: Sequence[NewUsage], charges: Sequence[NewCharge]) -> None:
        """Write both, and an entry for each charge.

        Charges are found by quota and object, and a confirmed one stays confirmed.
        """

    def append(self, entries: Sequence[NewEntry]) -> None:
        """Append entries to the journal, for charges that are written otherwise."""
