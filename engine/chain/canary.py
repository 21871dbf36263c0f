"""The canary: a dry run that is always refused, as proof that a cluster calls the webhook.

Whoever may create a pod may try it: only that dry run is refused. Nothing is stored, charged or
let through for it, and the same annotation on a pod that is meant means nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.chain.denial import details_of, message_of, status_of
from engine.decision import Decision, Outcome, Reason, Step, Violation
from engine.patch import PatchBuilder
from engine.request import Phase

if TYPE_CHECKING:
    from engine.request import AdmissionRequest

CANARY_ANNOTATION: Final = "policy.gatehouse.dev/canary"
"""Its value is a word of the asker's own, which the refusal repeats."""
MUTATED_ANNOTATION: Final = "policy.gatehouse.dev/canary-mutated"
"""What the mutating pass sets, so that the refusal can show whether that was called, too."""
_WORD: Final = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_FIELD: Final = f"metadata.annotations[{CANARY_ANNOTATION}]"


def is_canary(request: AdmissionRequest) -> bool:
    """Whether the request is the dry run of a canary's creation."""
    is_dry_run = request.dry_run and request.is_new_pod
    return is_dry_run and _word(request, CANARY_ANNOTATION) is not None


def answer_canary(request: AdmissionRequest, phase: Phase) -> Decision:
    """Mark it in the mutating phase, refuse it in any other; no policy is asked."""
    word, seen = _word(request, CANARY_ANNOTATION), _word(request, MUTATED_ANNOTATION)
    if phase is Phase.MUTATE:
        builder = PatchBuilder(request.object or {})
        builder.set(("metadata", "annotations", MUTATED_ANNOTATION), word)
        return Decision(
            allowed=True,
            patch=tuple(builder.operations),
            trace=(Step(name="Canary", outcome=Outcome.CHANGED, detail="marked as seen"),),
            object=builder.object,
        )
    message = canary_message(word if word and _WORD.fullmatch(word) else "", mutated=seen == word)
    violation = Violation(reason=Reason.CANARY, field=_FIELD, message=message)
    code, reason = status_of((violation,))
    return Decision(
        allowed=False,
        code=code,
        reason=reason,
        message=message_of(request, (violation,)),
        violations=(violation,),
        details=details_of(request, (violation,)),
        trace=(Step(name="Canary", outcome=Outcome.VIOLATED, detail="no policy was asked"),),
        object=request.object,
    )


def canary_message(word: str, *, mutated: bool) -> str:
    """What the refusal says, so that whoever sent the canary knows its own."""
    called = "asked" if mutated else "not asked"
    return f"canary {word} was refused, as it must be (mutating webhook: {called})"


def _word(request: AdmissionRequest, annotation: str) -> str | None:
    metadata = (request.object or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    found = annotations.get(annotation) if isinstance(annotations, dict) else None
    return found if isinstance(found, str) else None
