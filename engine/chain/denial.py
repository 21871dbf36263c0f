"""Build a denial: Status code, reason, message, causes, details of violations; ``invalid`` errors.

The message is Kubernetes' own text for the first violation, with the texts of the others behind it.

Source: ``apiserver/pkg/admission/errors.go`` and ``apimachinery/pkg/api/errors/errors.go``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from engine.bounds import (
    LONGEST_MESSAGE,
    LONGEST_REVIEW,
    Collected,
    bounded,
    cut_list,
)
from engine.decision import Decision, Outcome, Reason, Step, Violation
from engine.names import size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.errors import DecodeError, FieldError
    from engine.request import AdmissionRequest

_INVALID: Final = frozenset({Reason.INVALID_OBJECT, Reason.ANNOTATIONS_TOO_LONG})
_STATUS_CODES: Final = {
    Reason.INVALID_OBJECT: (422, "Invalid"),
    Reason.ANNOTATIONS_TOO_LONG: (422, "Invalid"),
    Reason.UNREADABLE_OBJECT: (400, "BadRequest"),
    # Kubernetes returns a bare error here, which its server renders as a 500 without a reason.
    Reason.BAD_SCOPE_SELECTOR: (500, ""),
}
_FORBIDDEN: Final = (403, "Forbidden")
NONE: Final[Mapping[Reason, int]] = {}
_WITHOUT_PREFIX: Final = frozenset({Reason.UNCOVERED_SCOPE, Reason.BAD_SCOPE_SELECTOR})


def status_of(violations: Sequence[Violation]) -> tuple[int, str]:
    """Code and reason of the Status, which follow the first violation."""
    return _STATUS_CODES.get(violations[0].reason, _FORBIDDEN)


def message_of(request: AdmissionRequest, violations: Sequence[Violation]) -> str:
    """Word all violations as one message, cut to the longest that is allowed."""
    first_reason = violations[0].reason
    if first_reason in _WITHOUT_PREFIX:
        prefix = ""
    elif first_reason in _INVALID:
        # Validation leaves the name of a nameless object empty; admission writes "Unknown".
        name = "" if request.display_name == "Unknown" else request.display_name
        prefix = f'{request.kind.kind} "{name}" is invalid: '
    else:
        prefix = f'{request.resource} "{request.display_name}" is forbidden: '
    return f"{prefix}{bounded(text_of(v) for v in violations)}"


def invalid(errors: Iterable[FieldError]) -> Collected:
    """Collect the errors of validation as violations."""
    collected = Collected()
    for error in errors:
        # Building the violations is most of the work, and a large object may have thousands.
        if collected.is_full:
            collected.count(Reason.INVALID_OBJECT)
            continue
        violation = Violation(
            reason=Reason.INVALID_OBJECT, field=error.field, message=error.message
        )
        if collected.wants(text := text_of(violation)):
            collected.keep(violation, text)
        else:
            collected.count(Reason.INVALID_OBJECT)
    return collected


def refused(
    decision: Decision,
    request: AdmissionRequest,
    violations: Sequence[Violation],
    more: Mapping[Reason, int] = NONE,
) -> Decision:
    """Turn a decision into a denial that lists the first violations and words all of them.

    ``more`` counts by reason those that were not kept.
    """
    code, reason = status_of(violations)
    listed, more = cut_list(violations, more)
    return dataclasses.replace(
        decision,
        allowed=False,
        code=code,
        reason=reason,
        message=message_of(request, violations),
        violations=listed,
        more_violations=more,
        causes=_causes(violations) if violations[0].reason in _INVALID else (),
        details=details_of(request, violations),
    )


def _causes(violations: Sequence[Violation]) -> tuple[tuple[str, str], ...]:
    """List field and text of each violation, up to the length of a message."""
    bytes_left, causes = LONGEST_MESSAGE, []
    for violation in violations:
        bytes_left -= size_of(violation.field) + size_of(violation.message)
        if bytes_left < 0:
            break
        causes.append((violation.field, violation.message))
    return tuple(causes)


def took_too_long(request: AdmissionRequest) -> Decision:
    """Refuse an object whose review would take longer than a review may."""
    message = (
        f"the object and the policies of its namespace are too large: judging it takes longer than "
        f"{LONGEST_REVIEW} s, which is the most that one review may take"
    )
    violation = Violation(reason=Reason.REVIEW_TOO_LONG, field="", message=message)
    step = Step(name="Chain", outcome=Outcome.ERROR, detail=message)
    return refused(
        Decision(allowed=False, trace=(step,), object=request.object), request, (violation,)
    )


def text_of(violation: Violation) -> str:
    """Word one violation for the message: those about an invalid object name their field."""
    if violation.reason in _INVALID:
        return f"{violation.field}: {violation.message}"
    return violation.message


def details_of(request: AdmissionRequest, violations: Sequence[Violation]) -> dict[str, str]:
    """Details of the Status; ``kind`` is the kind for validation, the resource for admission."""
    is_invalid = violations[0].reason in _INVALID
    details = {
        "name": request.display_name,
        "group": request.resource.group,
        "kind": request.kind.kind if is_invalid else request.resource.resource,
    }
    return {key: value for key, value in details.items() if value}


def unreadable(request: AdmissionRequest, error: DecodeError) -> Decision:
    """Refuse an object that no API server could read."""
    kind = request.kind
    version = f"{kind.group}/{kind.version}" if kind.group else kind.version
    message = (
        f'{kind.kind} in version "{version}" cannot be handled as a {kind.kind}: {error.detail}'
    )
    violation = Violation(reason=Reason.UNREADABLE_OBJECT, field=error.field, message=error.detail)
    code, reason = status_of((violation,))
    return Decision(
        allowed=False,
        code=code,
        reason=reason,
        message=message,
        violations=(violation,),
        details=details_of(request, (violation,)),
        trace=(Step(name="Decode", outcome=Outcome.ERROR, detail=error.detail),),
        object=request.object,
    )
