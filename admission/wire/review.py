"""AdmissionReview to AdmissionRequest by ``request_json``; decision to response, causes, warnings.

Plain Python, no rule and no HTTP.
Source: ``k8s.io/api/admission/v1/types.go`` and what an API server does with each field.
"""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Final

import orjson

from admission.wire.json_reader import find_uid, read_document, uid_despite_faults
from engine.bounds import AND_MORE
from engine.decision import Decision, Reason, Violation
from engine.errors import DecodeError
from engine.policy import Authority
from engine.request import Phase
from engine.request_json import build_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.patch import PatchOperation
    from engine.request import AdmissionRequest

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
MAX_BODY: Final = 8 * 1024 * 1024
MAX_WARNING: Final = 120
MAX_SUFFIX: Final = 100
_SUFFIX: Final = " (decision {})"
_NATIVE: Final = "the portal's verdict: decision {}"  # with the longest link, as long as may be

_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403
_TOO_LARGE: Final = 413
_INVALID: Final = 422
_TOO_MANY: Final = 429
_INTERNAL: Final = 500
_LAST_CODE: Final = 999
_REASONS: Final = {
    _BAD_REQUEST: "BadRequest",
    _TOO_LARGE: "RequestEntityTooLarge",
    _INVALID: "Invalid",
}
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class NotAReviewError(ValueError):
    """A body without a readable ``request.uid``: nothing to answer a review to."""


class ReviewError(ValueError):
    """A review that cannot be decided, though its uid can be read: answer it with a denial.

    ``code`` is 400 (not decodable), 413 (too large) or 422 (a field of the wrong type).
    """

    def __init__(self, uid: str, code: int, field: str, detail: str) -> None:
        super().__init__(detail)
        self.uid = uid
        self.code = code
        self.field = field

    @property
    def decision(self) -> Decision:
        """The denial to record and to render."""
        message = str(self)
        violation = Violation(reason=Reason.UNREADABLE_OBJECT, field=self.field, message=message)
        return Decision(
            allowed=False,
            code=self.code,
            reason=_REASONS[self.code],
            message=message,
            violations=(violation,),
        )


def parse_request(body: bytes | bytearray | Mapping[str, Any]) -> AdmissionRequest:
    """Read a review, as bytes or decoded (with numbers that kept their text).

    Raises ``ReviewError`` where the uid can be read, ``NotAReviewError`` where it cannot.
    """
    if not isinstance(body, bytes | bytearray):
        return _read_review(body, is_plain=False)
    body = bytes(body)
    if len(body) > MAX_BODY:
        raise too_large(body)
    try:
        review, plain = read_document(body)
    except DecodeError as error:
        detail = f"the review is not readable: {error.detail}"
        raise _answerable(body, _BAD_REQUEST, detail) from None
    return _read_review(review, is_plain=plain)


def _read_review(review: Any, *, is_plain: bool) -> AdmissionRequest:
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict):
        raise NotAReviewError("the body is not an AdmissionReview: it has no request")
    uid = request.get("uid")
    if type(uid) is not str or not uid:
        raise NotAReviewError("the body is not an AdmissionReview: request.uid is not a text")
    _expect_version(review, uid)
    try:
        return build_request(request, is_plain=is_plain)
    except DecodeError as error:
        raise ReviewError(uid, _INVALID, f"request.{error.field}", error.detail) from None


def too_large(head: bytes) -> ReviewError | NotAReviewError:
    """Build the error for a body above ``MAX_BODY``, of which only the beginning was read."""
    detail = f"the review is larger than {MAX_BODY // (1024 * 1024)} MiB"
    return _answerable(head, _TOO_LARGE, detail)


def _answerable(body: bytes, code: int, detail: str) -> ReviewError | NotAReviewError:
    uid = find_uid(body) or (uid_despite_faults(body) if code == _BAD_REQUEST else "")
    return ReviewError(uid, code, "", detail) if uid else NotAReviewError(detail)


def _expect_version(review: Mapping[str, Any], uid: str) -> None:
    spoken = (review.get("apiVersion"), review.get("kind"))
    if spoken != (API_VERSION, KIND):
        detail = f"only {API_VERSION} {KIND} is spoken here"
        raise ReviewError(uid, _BAD_REQUEST, "apiVersion", detail)


def render_response(
    decision: Decision, uid: str, *, phase: Phase, decision_id: str, external_url: str
) -> dict[str, Any]:
    """Render the review that answers ``uid``, safe for every client.

    A patch is written only by an allowing answer of the mutating phase: anywhere else it
    would turn the answer into an error.
    """
    response: dict[str, Any] = {"uid": uid, "allowed": decision.allowed}
    if not decision.allowed:
        response["status"] = _status_of_denial(decision, decision_id, external_url)
    elif phase is Phase.MUTATE and decision.patch:
        response["patchType"] = "JSONPatch"
        texts = ", ".join([_operation_text(operation) for operation in decision.patch])
        response["patch"] = b2a_base64(f"[{texts}]".encode("ascii"), newline=False).decode("ascii")
    if warnings := render_warnings(decision.warnings):
        if decision.authority is Authority.NATIVE and decision.observed:
            # If the API server refuses the object, its message does not name our decision.
            warnings.append(_NATIVE.format(decision_link(decision_id, external_url)))
        response["warnings"] = warnings
    response["auditAnnotations"] = _audit_annotations(decision, decision_id)
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def render_allowance(uid: str) -> dict[str, Any]:
    """Render the review that lets ``uid`` pass without a decision."""
    response = {"uid": uid, "allowed": True}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _operation_text(operation: PatchOperation) -> str:
    """Write an operation as ``json.dumps`` does; faster for texts, which nearly all of them set."""
    if operation.op == "remove" or type(operation.value) is not str:
        return json.dumps(operation.to_json())
    path, value = encode_basestring_ascii(operation.path), encode_basestring_ascii(operation.value)
    return f'{{"op": "{operation.op}", "path": {path}, "value": {value}}}'


def _status_of_denial(decision: Decision, decision_id: str, external_url: str) -> dict[str, Any]:
    status: dict[str, Any] = {
        "code": safe_code(decision.code),
        "message": f"{decision.message}{_SUFFIX.format(decision_link(decision_id, external_url))}",
    }
    if decision.reason:
        status["reason"] = decision.reason
    details: dict[str, Any] = dict(decision.details)
    if decision.code == _INVALID:
        details["causes"] = _causes(decision, decision_id, external_url)
    if details:
        status["details"] = details
    return status


def _causes(decision: Decision, decision_id: str, external_url: str) -> list[dict[str, str]]:
    """The causes, which kubectl prints instead of the message: all violations and the decision."""
    placed = decision.causes or [(found.field, found.message) for found in decision.violations]
    causes = [
        {"reason": "FieldValueInvalid", "field": field, "message": message}
        for field, message in placed
    ]
    not_listed = len(decision.violations) + sum(decision.more_violations.values()) - len(causes)
    if not_listed > 0:
        causes.append({"reason": "More", "field": "", "message": f"{AND_MORE}: {not_listed}"})
    link = decision_link(decision_id, external_url)
    return [*causes, {"reason": "Decision", "field": "decision", "message": link}]


def safe_code(code: int) -> int:
    """A code that clients report: they drop one below 400, and retry after 429."""
    if code < _BAD_REQUEST:
        return _BAD_REQUEST
    if code == _TOO_MANY:
        return _FORBIDDEN
    return code if code <= _LAST_CODE else _INTERNAL


def decision_link(decision_id: str, external_url: str) -> str:
    """The id of the decision, and its address if that is short enough."""
    link = f"{decision_id}, {external_url.rstrip('/')}/decisions/{decision_id}"
    fits = len(link) + len(_SUFFIX.format("")) <= MAX_SUFFIX
    return link if external_url and fits else decision_id


def render_warnings(warnings: tuple[str, ...]) -> list[str]:
    """Warnings as HTTP headers carry them: no control characters, none empty or twice, 120 long."""
    cleaned_warnings = (_CONTROL_CHARACTERS.sub(" ", warning).strip() for warning in warnings)
    shortened_warnings = (
        text if len(text) <= MAX_WARNING else f"{text[: MAX_WARNING - 1].rstrip()}…"
        for text in cleaned_warnings
        if text
    )
    return list(dict.fromkeys(shortened_warnings))


def _audit_annotations(decision: Decision, decision_id: str) -> dict[str, str]:
    """The decision and its reasons, for the cluster's own audit log."""
    annotations = {"decision-id": decision_id}
    listed = {
        "violations": decision.violations,
        "observed": decision.observed,
    }
    not_listed = {"violations": decision.more_violations, "observed": decision.more_observed}
    for annotation, violations in listed.items():
        if violations:
            reasons = {*(violation.reason for violation in violations), *not_listed[annotation]}
            annotations[annotation] = ",".join(sorted(reasons))
        if not_listed[annotation]:
            annotations[f"{annotation}-not-listed"] = str(sum(not_listed[annotation].values()))
    return annotations


def dump_response(response: Mapping[str, Any]) -> bytes:
    """Write the answer as UTF-8 JSON; as ASCII where a lone surrogate has no other spelling."""
    try:
        return orjson.dumps(response)
    except TypeError:
        return json.dumps(response).encode("ascii")
