"""``cut_down``: a stored request without the names, uids and times that no rule reads; its key.

Requests with equal keys get equal outcomes under the same policies, so that one of them is judged.
Names stand in messages alone, which an outcome leaves out.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from admission.replay.recorded import StoredRequest

_UNREAD: Final = ("uid", "name", "userInfo")
_UNREAD_METADATA: Final = (
    "name",
    "generateName",
    "uid",
    "generation",
    "creationTimestamp",
    "ownerReferences",
)
_OBJECTS: Final = ("object", "oldObject")
_NAMED: Final = frozenset({"limitranges", "resourcequotas", "metadatapolicies"})
"""Policy objects are validated, with their names."""
_STORED: Final = "1"
_KEY_BYTES: Final = 16


def cut_down(stored: StoredRequest, *, phase: str, moment: int) -> bytes:
    """Remove from a request, in place, what no rule reads; returns the key of what is left.

    ``moment`` is the second of the decision: the clock matters for objects that are being deleted.
    """
    for name in _UNREAD:
        stored.pop(name, None)
    resource = stored.get("resource")
    is_named = isinstance(resource, dict) and resource.get("resource") in _NAMED
    clock = 0
    for name in _OBJECTS:
        obj = stored.get(name)
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        if not isinstance(metadata, dict):
            continue
        if "deletionTimestamp" in metadata:
            clock = moment
        if not is_named:
            _cut_metadata(metadata)
    # Not sorted: findings and patches follow the order of the object's fields.
    text = orjson.dumps((phase, clock, stored))
    return blake2b(text, digest_size=_KEY_BYTES).digest()


def _cut_metadata(metadata: dict[str, Any]) -> None:
    for name in _UNREAD_METADATA:
        metadata.pop(name, None)
    # Quotas read whether there is one: an object without it was never stored.
    if metadata.get("resourceVersion") and type(metadata["resourceVersion"]) is str:
        metadata["resourceVersion"] = _STORED
