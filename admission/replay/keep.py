"""``kept_from`` a decision on record: the manifest of a test that expects the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from admission.models import Verdict
from admission.replay.recorded import PastDecision, Unreplayed, read_stored
from engine.kept_tests import KIND, REASONS
from engine.kept_tests.definition import OPERATIONS
from engine.metadata_policy import API_VERSION
from engine.names import LAST_APPLIED
from engine.wire import dumps

if TYPE_CHECKING:
    from admission.models import AuditEvent

_FILLER: Final = '"$bytes"'
_WORDS: Final = {
    Unreplayed.CUT: "The object was too large to be recorded whole, so it cannot be judged again.",
    Unreplayed.KIND_NOT_KEPT: "Only the metadata of this object is on record.",
    Unreplayed.UNREADABLE: "The recorded object cannot be read.",
    Unreplayed.NOT_JUDGED: "It was refused before any policy was asked.",
}
REDACTED: Final = "A long text of the object was not recorded, so it cannot be judged again."
NO_OPERATION: Final = "Only objects that are created or updated are kept as tests."


class NotKeepableError(ValueError):
    """A decision that cannot become a test, in a sentence."""


def kept_from(event: AuditEvent, *, name: str = "") -> dict[str, Any]:
    """The manifest of a test with the object, the caller and the answer of a decision.

    The patch is left out: what is on record is that of one call of two. Raises NotKeepableError.
    """
    if event.operation not in OPERATIONS:
        raise NotKeepableError(NO_OPERATION)
    stored = read_stored(PastDecision.of(event), ())
    if isinstance(stored, Unreplayed):
        raise NotKeepableError(_WORDS.get(stored, REDACTED))
    objects = {part: _without_copy(stored.get(part)) for part in ("object", "oldObject")}
    if _FILLER in dumps(objects):
        raise NotKeepableError(REDACTED)
    is_denied = event.verdict == Verdict.DENIED
    reasons = [each for each in event.reasons.split() if each in REASONS] if is_denied else []
    spec = {
        "operation": event.operation,
        "subResource": event.sub_resource,
        "user": event.user,
        "decision": event.id,
        "expect": {
            "verdict": "deny" if is_denied else "allow",
            **({"reasons": reasons} if reasons else {}),
        },
        **objects,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "namespace": event.namespace},
        "spec": {member: value for member, value in spec.items() if value},
    }


def _without_copy(obj: Any) -> Any:
    """Without the copy of itself that kubectl keeps in an annotation, which is often too long."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or LAST_APPLIED not in annotations:
        return obj
    kept = {key: text for key, text in annotations.items() if key != LAST_APPLIED}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}
