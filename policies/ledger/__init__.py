"""The quota ledger: charge, confirm, release, recount, under row locks; only it writes ``used``.

``used`` of a quota is at any time the sum of that quota's charges that are not released. A charge
holds an object's whole usage, not a difference, so that writing it twice changes nothing. What a
cluster reported before the ledger began is a charge of its own, the opening balance.

This package exports what reads. Code that changes the ledger imports the module that does it
(``book``, ``release``, ``recount``, ``live_objects``, ``unlisted``); the contract "Writers of the
ledger" in ``pyproject.toml`` names the packages that may.
"""

from policies.ledger.book import OPENING_RESOURCE, OPENING_UID
from policies.ledger.rows import Key, object_key
from policies.ledger.usage import Point, forget_points, points_by_uid, points_of, take_points

__all__ = [
    "OPENING_RESOURCE",
    "OPENING_UID",
    "Key",
    "Point",
    "forget_points",
    "object_key",
    "points_by_uid",
    "points_of",
    "take_points",
]
