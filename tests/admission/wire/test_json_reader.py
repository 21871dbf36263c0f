"""Reading a body: the quick way and the exact way mean the same, and records stay the same."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import orjson
import pytest

from admission.record.kept_fields import SHAPES, excerpt_of
from admission.record.redaction import redacted_object, redacted_request
from admission.wire.json_reader import PLAIN_LENGTH
from admission.wire.review import ReviewError, parse_request
from engine.names import LAST_APPLIED
from engine.wire import RawNumber, dumps, loads


def body(obj: str, **more: Any) -> bytes:
    """A compact review; the object stands as it is given."""
    kind = {"version": "v1", "kind": "Pod"}
    resource = {"version": "v1", "resource": "pods"}
    request = {"uid": "u", "kind": kind, "resource": resource, "operation": "CREATE", **more}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    text = json.dumps(
        {**review, "request": {**request, "object": "<object>"}}, separators=(",", ":")
    )
    return text.replace('"<object>"', obj).encode()


@pytest.mark.parametrize(
    ("obj", "kind"),
    [
        pytest.param('{"a":1}', int, id="whole"),
        pytest.param('{"a":-5}', int, id="negative"),
        pytest.param('{"a":1.0}', RawNumber, id="fraction"),
        pytest.param('{"a":1e3}', RawNumber, id="exponent"),
        pytest.param('{"a":-0}', RawNumber, id="minus-zero"),
        pytest.param('{"a":9007199254740993}', RawNumber, id="beyond-doubles"),
        pytest.param('{"a":123456789012345678901234567890}', RawNumber, id="beyond-64-bit"),
        pytest.param('{"a": 1}', RawNumber, id="spaced"),
        pytest.param('{"a":1,"b":"\\u0041"}', RawNumber, id="odd-escape"),
        pytest.param('{"a":1,"b":"\\ud800"}', RawNumber, id="lone-surrogate"),
        pytest.param('{"a":1,"b":"\\\\u003c"}', int, id="escaped-backslash"),
        pytest.param('{"a":1,"b":"\\u003c\\u003e\\u0026"}', int, id="escapes-of-go"),
        pytest.param('{"a":1,"b":"\\\\\\u003c"}', int, id="backslash-and-escape-of-go"),
    ],
)
def test_number_is_an_int_only_where_nothing_is_lost(obj: str, kind: type) -> None:
    found = parse_request(body(obj)).object
    assert found is not None
    assert type(found["a"]) is kind
    assert dumps(found) == dumps(loads(obj))


def test_line_break_at_the_end_changes_nothing() -> None:
    assert parse_request(body('{"a":1}') + b"\n") == parse_request(body('{"a":1}'))


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param('{"a":1,"a":1}', id="key-twice"),
        pytest.param('{"a":{"\\u003c":1,"<":1}}', id="key-twice-in-two-spellings"),
        pytest.param('{"a":NaN}', id="not-a-number"),
        pytest.param('{"a":"\x01"}', id="bare-control"),
        pytest.param("[" * 11_000 + "]" * 11_000, id="too-deep"),
    ],
)
def test_what_the_exact_reader_refuses_is_refused(obj: str) -> None:
    with pytest.raises(ReviewError) as caught:
        parse_request(body(obj))
    assert caught.value.code == 400


def test_deep_object_is_read_all_the_same() -> None:
    obj = '{"a":' * 2000 + "1" + "}" * 2000
    assert dumps(parse_request(body(obj)).object) == obj


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param('{"metadata":{"labels":{"a":"b"},"name":"\\u00e9"}}', id="odd"),
        pytest.param('{"metadata":{"labels":{"a":"é","$b":"␛"}}}', id="dollar-key-escape-sign"),
        pytest.param('{"metadata":{"labels":{"a":"$(X)"},"name":"\\u0000"}}', id="nul"),
        pytest.param('{"metadata":{"labels":{"$a\\"":"b"}}}', id="dollar-key-with-quote"),
        pytest.param('{"metadata":{"annotations":{"a":"' + "x" * 600 + '"}}}', id="annotation"),
        pytest.param('{"metadata":{"labels":' + '{"a":' * 60 + "1" + "}" * 62, id="deep"),
        pytest.param('{"spec":{"containers":[{"resources":{"limits":{"cpu":1}}}]}}', id="int"),
        pytest.param('{"metadata":{"name":"' + "x" * PLAIN_LENGTH + '"}}', id="long"),
        pytest.param('{"metadata":[],"spec":"secret","status":{"phase":5}}', id="other-types"),
    ],
)
def test_record_is_the_same_whichever_way_it_was_read(obj: str) -> None:
    quick = parse_request(body(obj))
    exact = parse_request(loads(body(obj)))
    assert redacted_request(quick) == redacted_request(exact)
    assert redacted_request(dataclasses.replace(quick, is_plain=False)) == redacted_request(quick)


POD = (
    '{"kind":"Pod","metadata":{"name":"é","labels":{"a":"$(B)"},"annotations":{"x":"y"},'
    '"managedFields":[{}]},"spec":{"overhead":{"cpu":"1"},"containers":[{"name":"c","image":"i",'
    '"env":[{"name":"SECRET"}],"resources":{"limits":{"cpu":1,"memory":null}}}],'
    '"initContainers":null,"affinity":{"podAffinity":{}}},"status":{"conditions":[{"x":1}]}}'
)


def test_ordinary_objects_go_the_quick_way_to_the_same_text() -> None:
    asked = parse_request(body(POD))
    assert asked.is_plain
    quick = excerpt_of(asked.object, kind="Pod")
    assert quick is not None
    assert orjson.dumps(quick) == orjson.dumps(redacted_object(asked.object, kind="Pod"))
    assert b"SECRET" not in orjson.dumps(quick)


@pytest.mark.parametrize("kind", [*SHAPES, "Other"])
def test_each_kind_has_a_quick_way(kind: str) -> None:
    obj = {"metadata": {"name": "a"}, "spec": {"hard": {"cpu": "1"}}}
    assert excerpt_of(obj, kind=kind) is not None


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"annotations": {"a": "x" * 513}}, id="long-annotation"),
        pytest.param({"annotations": {LAST_APPLIED: "{}"}}, id="last-applied"),
        pytest.param({"annotations": {"a": 1}}, id="other-type"),
        pytest.param({"labels": {"a": [[[[[[[[[]]]]]]]]]}}, id="deep"),
        pytest.param("secret", id="no-object"),
    ],
)
def test_what_is_not_ordinary_does_not_go_the_quick_way(metadata: Any) -> None:
    assert excerpt_of({"metadata": metadata}, kind="Pod") is None
