"""AdmissionReview on the wire: what is read, what is answered in spite of trouble, what is sent."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from admission.wire.json_reader import find_uid
from admission.wire.review import (
    MAX_BODY,
    NotAReviewError,
    ReviewError,
    decision_link,
    dump_response,
    parse_request,
    render_response,
    render_warnings,
    safe_code,
)
from engine.decision import Decision, Reason, Violation
from engine.patch import PatchOperation
from engine.request import Operation, Phase
from tests.builders import pod

Shape = dict[str, Any]
FULL: Shape = {
    "uid": "u-1",
    "kind": {"group": "", "version": "v1", "kind": "Pod"},
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "subResource": "resize",
    "name": "p",
    "namespace": "ns",
    "operation": "UPDATE",
    "userInfo": {"username": "jo", "groups": ["a", 1]},
    "object": pod(),
    "oldObject": pod(),
    "dryRun": True,
    "unheardOf": [],
}


def review(**changes: Any) -> Shape:
    request = {key: value for key, value in {**FULL, **changes}.items() if value is not ...}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def respond(decision: Decision, *, phase: Phase = Phase.VALIDATE, url: str = "https://g") -> Shape:
    answer = render_response(
        decision, "u-1", phase=phase, decision_id="0123456789abcdef", external_url=url
    )
    response: Shape = answer["response"]
    return response


def denial(code: int = 403, reason: str = "Forbidden", **more: Any) -> Decision:
    return Decision(allowed=False, code=code, reason=reason, message="no", **more)


# Reading


def test_request_is_read_with_all_its_parts() -> None:
    found = parse_request(json.dumps(review()).encode())
    assert (found.uid, found.user, found.groups) == ("u-1", "jo", ("a",))
    assert (found.operation, found.sub_resource, found.dry_run) == (
        Operation.UPDATE,
        "resize",
        True,
    )
    assert str(found.resource) == "pods"
    assert found.old_object is not None


def test_numbers_keep_their_text() -> None:
    body = json.dumps(review()).encode().replace(b'"image": "i"', b'"cpu": 1e3')
    found = parse_request(body)
    assert found.object is not None
    assert found.object["spec"]["containers"][0]["cpu"] == "1e3"


def test_decoded_review_is_read_too() -> None:
    assert parse_request(review(groups=None, oldObject=None, userInfo=...)).user == ""


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"request": 1}', b'{"request": {"uid": 1}}', b'{"request": {"uid": ""}}'],
)
def test_body_without_a_uid_is_no_review(body: bytes) -> None:
    with pytest.raises(NotAReviewError):
        parse_request(body)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"operation": "PATCH"}, "request.operation"),
        ({"operation": 1}, "request.operation"),
        ({"kind": []}, "request.kind"),
        ({"kind": {}}, "request.kind.kind"),
        ({"resource": ...}, "request.resource.resource"),
        ({"object": "x"}, "request.object"),
        ({"oldObject": []}, "request.oldObject"),
        ({"dryRun": "yes"}, "request.dryRun"),
        ({"userInfo": {"username": {}}}, "request.userInfo.username"),
        ({"namespace": 1.5}, "request.namespace"),
    ],
)
def test_wrong_field_is_answered_as_a_review(changes: Shape, field: str) -> None:
    with pytest.raises(ReviewError) as caught:
        parse_request(review(**changes))
    assert (caught.value.uid, caught.value.code, caught.value.field) == ("u-1", 422, field)


@pytest.mark.parametrize(
    "changes", [{"apiVersion": "admission.k8s.io/v1beta1"}, {"kind": "Review"}], ids=str
)
def test_other_version_is_answered_as_a_review(changes: Shape) -> None:
    with pytest.raises(ReviewError) as caught:
        parse_request({**review(), **changes})
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"request": {"uid": "u-1", "object": {"a": 1, "a": 2}}}', 400),
        (b'{"request": {"uid": "u-1", "object": {', 400),
        (b'{"kind": "x", "request": {"dryRun": true, "uid": "u-1"}} trailing', 400),
        (b'{"pad": "' + b"x" * 5000 + b'\xbf", "request": {"uid": "u-1", "a": 1, "a": 2}}', 400),
        (b'{"request": {"uid": "u-1"}}' + b" " * MAX_BODY, 413),
    ],
    ids=["key twice", "cut off", "trailing text", "far and odd", "too large"],
)
def test_unreadable_body_is_answered_where_its_uid_is_readable(body: bytes, code: int) -> None:
    with pytest.raises(ReviewError) as caught:
        parse_request(body)
    assert (caught.value.uid, caught.value.code) == ("u-1", code)
    assert caught.value.decision.violations[0].reason is Reason.UNREADABLE_OBJECT
    assert caught.value.decision.code == code


@pytest.mark.parametrize(
    ("head", "uid"),
    [
        (b'{"request":{"userInfo":{"uid":"other"},"uid":"mine"', "mine"),
        (b'{"request":{"groups":["uid","x"],"uid":"a\\u0062"', "ab"),
        (b'{"metadata":{"uid":"other"}}', ""),
        (b'{"uid":"other","request":{}', ""),
        (b'{"request":{"uid":"\\x"', ""),
        (b'{"request":{"name":"uid"', ""),
        (b"}}]]", ""),
        (b'{"pad":"' + b"x" * 5000 + b'","request":{"uid":"far"', ""),
    ],
)
def test_uid_is_found_only_where_it_belongs(head: bytes, uid: str) -> None:
    assert find_uid(head) == uid


# Answering


def test_allowed_answer_holds_no_more_than_needed() -> None:
    response = respond(Decision(allowed=True))
    assert response == {
        "uid": "u-1",
        "allowed": True,
        "auditAnnotations": {"decision-id": "0123456789abcdef"},
    }


PATCHED = Decision(allowed=True, patch=(PatchOperation("add", "/a", "ü"),))


def test_patch_is_sent_while_mutating() -> None:
    response = respond(PATCHED, phase=Phase.MUTATE)
    assert response["patchType"] == "JSONPatch"
    sent = json.loads(base64.b64decode(response["patch"]))
    assert sent == [{"op": "add", "path": "/a", "value": "ü"}]


@pytest.mark.parametrize("phase", [Phase.VALIDATE, Phase.BOTH])
def test_patch_is_never_sent_while_validating(phase: Phase) -> None:
    assert {"patch", "patchType"}.isdisjoint(respond(PATCHED, phase=phase))


def test_denial_carries_no_patch_and_names_its_record() -> None:
    response = respond(denial(patch=PATCHED.patch, details={"kind": "pods"}), phase=Phase.MUTATE)
    assert "patch" not in response
    link = "0123456789abcdef, https://g/decisions/0123456789abcdef"
    assert response["status"] == {
        "code": 403,
        "reason": "Forbidden",
        "message": f"no (decision {link})",
        "details": {"kind": "pods"},
    }


def test_invalid_object_lists_its_causes_and_the_decision() -> None:
    violation = Violation(reason=Reason.INVALID_OBJECT, field="spec.x", message="Required value")
    status = respond(denial(422, "Invalid", violations=(violation,)))["status"]
    fields = [cause["field"] for cause in status["details"]["causes"]]
    assert fields == ["spec.x", "decision"]


def test_bare_error_has_no_reason() -> None:
    assert "reason" not in respond(denial(500, ""))["status"]


@pytest.mark.parametrize(
    ("url", "link"),
    [
        ("https://g/", "0123456789abcdef, https://g/decisions/0123456789abcdef"),
        ("", "0123456789abcdef"),
        (f"https://{'long.' * 10}example", "0123456789abcdef"),
    ],
)
def test_address_is_dropped_where_it_would_be_too_long(url: str, link: str) -> None:
    assert decision_link("0123456789abcdef", url) == link
    assert len(respond(denial(), url=url)["status"]["message"]) <= len("no") + 100


@pytest.mark.parametrize(
    ("code", "sent"), [(0, 400), (399, 400), (403, 403), (429, 403), (999, 999), (1000, 500)]
)
def test_code_is_one_that_clients_survive(code: int, sent: int) -> None:
    assert safe_code(code) == sent


def test_warnings_arrive() -> None:
    given = ("a\nb\x00c", "", "\t", "same", "same", "x" * 300)
    assert render_warnings(given) == ["a b c", "same", "x" * 119 + "…"]
    assert respond(Decision(allowed=True, warnings=("w",)))["warnings"] == ["w"]


def test_audit_annotations_name_what_was_found() -> None:
    violation = Violation(reason=Reason.MAX_CONSTRAINT, field="f", message="m")
    response = respond(denial(violations=(violation,), observed=(violation, violation)))
    assert response["auditAnnotations"]["violations"] == "MaxConstraint"
    assert response["auditAnnotations"]["observed"] == "MaxConstraint"


def test_answer_is_ascii_even_for_a_lone_surrogate() -> None:
    answer = {"uid": "\ud800ü"}
    assert json.loads(dump_response(answer)) == answer
    assert dump_response(answer).isascii()
