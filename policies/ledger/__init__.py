"""The quota ledger: charge, confirm, release, recount, under row locks; only it writes ``used``.

``used`` of a quota is at any time the sum of that quota's charges that are not released. A charge
holds an object's whole usage, not a difference, so that writing it twice changes nothing. What a
cluster reported before the ledger began is a charge of its own, the opening balance.
"""

from policies.ledger.book import OPENING_RESOURCE, OPENING_UID, Book, ask_book, open_book
from policies.ledger.recount import RecountDifference, open_accounts, recount, settle
from policies.ledger.release import (
    confirm,
    confirm_seen,
    lock_quotas,
    read_clock,
    release,
    release_orphans,
    set_opening_balance,
)
from policies.ledger.rows import Key, object_key
from policies.ledger.usage import Point, forget_points, points_of, take_points

__all__ = [
    "OPENING_RESOURCE",
    "OPENING_UID",
    "Book",
    "Key",
    "Point",
    "RecountDifference",
    "ask_book",
    "confirm",
    "confirm_seen",
    "forget_points",
    "lock_quotas",
    "object_key",
    "open_accounts",
    "open_book",
    "points_of",
    "read_clock",
    "recount",
    "release",
    "release_orphans",
    "set_opening_balance",
    "settle",
    "take_points",
]
