"""The canary: a dry-run pod with a word in an annotation, marked by one pass, then refused.

Anybody who may create pods may send one: only that dry run is refused. It never stores, charges or
admits anything, and on a request that is no dry run the annotation has no effect.
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
"""Its value is a word that the sender chooses; the refusal repeats it."""
MUTATED_ANNOTATION: Final = "policy.gatehouse.dev/canary-mutated"
"""The mutating pass sets it, so that the refusal shows whether that webhook was called, too."""
_WORD: Final = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_CANARY_FIELD: Final = f"metadata.annotations[{CANARY_ANNOTATION}]"


def is_canary(request: AdmissionRequest) -> bool:
    """Whether the request is a dry run that creates a canary."""
    is_dry_run = request.dry_run and request.is_new_pod
    return is_dry_run and _canary_word(request, CANARY_ANNOTATION) is not None


def answer_canary(request: AdmissionRequest, phase: Phase) -> Decision:
    """Mark the canary in the mutating phase, refuse it in any other; policies are not evaluated."""
    word, seen = _canary_word(request, CANARY_ANNOTATION), _canary_word(request, MUTATED_ANNOTATION)
    if phase is Phase.MUTATE:
        builder = PatchBuilder(request.object or {})
        builder.set(("metadata", "annotations", MUTATED_ANNOTATION), word)
        return Decision(
            allowed=True,
            patch=tuple(builder.operations),
            trace=(Step(name="Canary", outcome=Outcome.CHANGED, detail="marked as seen"),),
            object=builder.object,
        )
    # Whatever is no plain word is not repeated in a message that others may show.
    message = canary_message(word if word and _WORD.fullmatch(word) else "", mutated=seen == word)
    violation = Violation(reason=Reason.CANARY, field=_CANARY_FIELD, message=message)
    code, reason = status_of((violation,))
    return Decision(
        allowed=False,
        code=code,
        reason=reason,
        message=message_of(request, (violation,)),
        violations=(violation,),
        details=details_of(request, (violation,)),
        trace=(Step(name="Canary", outcome=Outcome.VIOLATED, detail="no policy was evaluated"),),
        object=request.object,
    )


def canary_message(word: str, *, mutated: bool) -> str:
    """The text of the refusal, by which the sender recognises its own canary."""
    called = "asked" if mutated else "not asked"
    return f"canary {word} was refused, as it must be (mutating webhook: {called})"


def _canary_word(request: AdmissionRequest, annotation: str) -> str | None:
    metadata = (request.object or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    word = annotations.get(annotation) if isinstance(annotations, dict) else None
    return word if isinstance(word, str) else None
