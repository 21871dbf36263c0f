"""Reviews of one text are read and recorded once, as reading and recording each of them gives."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from admission import alike
from admission.alike import read_review
from admission.record.write import columns_of
from admission.wire.json_reader import PLAIN_LENGTH
from admission.wire.review import NotAReviewError, ReviewError, parse_request
from bench.review import fresh
from engine.chain import prepare
from engine.names import LAST_APPLIED
from engine.policy import PolicySet
from engine.request import Phase
from engine.wire import dumps, loads

if TYPE_CHECKING:
    from admission.alike import ReadReview

POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "web-1",
        "namespace": "ns",
        "uid": "o-1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "web"},
        "managedFields": [{"manager": "m", "time": "2026-01-01T00:00:00Z"}, {"manager": "n"}],
    },
    "spec": {"containers": [{"name": "c"}]},
}


def text(pod: Any = POD, **changes: Any) -> str:
    """A compact review as an API server writes it, with other members in its request."""
    asked = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "web-1",
        "namespace": "ns",
        "operation": "CREATE",
        "userInfo": {"username": "u"},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        **changes,
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": asked}
    return json.dumps(review, separators=(",", ":"), ensure_ascii=False)


def without_unread(obj: Any) -> str:
    """The text of an object without volumes' names and managed fields."""
    if obj and obj.get("metadata"):
        metadata = {key: each for key, each in obj["metadata"].items() if key != "managedFields"}
        obj = {**obj, "metadata": metadata}
    return re.sub('"kube-api-access-[a-z0-9]{5}"', '"kube-api-access-"', dumps(obj))


def same(quick: ReadReview, body: str) -> bool:
    """Whether it is what the exact reader gives, members of the object in the same order."""
    exact = dataclasses.replace(parse_request(loads(body)), is_plain=quick.request.is_plain)
    if without_unread(quick.request.object) != without_unread(exact.object):
        return False
    without_object = [dataclasses.replace(each, object=None) for each in (quick.request, exact)]
    return without_object[0] == without_object[1] and quick.columns == columns_of(
        parse_request(body.encode())
    )


def test_reviews_of_one_text_share_all_but_their_own() -> None:
    read_review(text().encode())
    one = read_review(text().encode())
    other = read_review(text().replace("u-1", "u-2").replace("web-1", "web-2").encode())
    request = other.request
    assert (request.uid, request.name, request.display_name) == ("u-2", "web-2", "web-2")
    assert one.request.object is not None
    assert request.object is not None
    assert one.request.object["spec"] is request.object["spec"]
    assert one.request.object["metadata"]["name"] == "web-1"
    assert request.object["metadata"]["name"] == "web-2"
    assert other.columns["name"] == "web-2"
    assert one.alike is other.alike is not None


TOKEN = "kube-api-access-x2x2x"
SPEC = {
    "volumes": [{"name": "other"}, {"name": TOKEN}],
    "initContainers": [{"name": "i"}],
    "containers": [{"name": "c", "volumeMounts": [{"name": TOKEN}, {"name": "other"}]}],
}
BODIES = [
    pytest.param(text({**POD, "spec": SPEC}), id="volume"),
    pytest.param(text({**POD, "spec": SPEC}).replace(TOKEN, f"{TOKEN[:-5]}abcde"), id="another"),
    pytest.param(text({**POD, "spec": SPEC}).replace(TOKEN, TOKEN[:-5]), id="blank-volume"),
    pytest.param(text({**POD, "spec": SPEC}).replace("other", TOKEN[:-5]), id="and-a-blank-one"),
    pytest.param(text({**POD, "spec": SPEC}).replace(TOKEN, f"{TOKEN}y"), id="longer-volume"),
    pytest.param(text({**POD, "spec": {**SPEC, "nodeName": TOKEN}}), id="volume-elsewhere"),
    pytest.param(text({**POD, "spec": {TOKEN: 1}}), id="volume-as-key"),
    pytest.param(text({**POD, "spec": {**SPEC, "volumes": None}}), id="no-volumes"),
    pytest.param(text({**POD, "spec": {**SPEC, "volumes": ["x"]}}), id="odd-volumes"),
    pytest.param(text({**POD, "spec": {"a": f'\\"{TOKEN}'}}), id="volume-in-quotes"),
    pytest.param(text({**POD, "spec": SPEC}, name=TOKEN), id="volume-as-name"),
    pytest.param(text(), id="usual"),
    pytest.param(text() + "\n", id="line-break"),
    pytest.param(text().replace("web-1", "web-2"), id="other-name"),
    pytest.param(text().replace("o-1", "o-2"), id="other-uid"),
    pytest.param(text().replace("2026", "2027"), id="other-time"),
    pytest.param(text().replace('"web"', '"other"'), id="other-label"),
    pytest.param(text({**POD, "metadata": {"generateName": "web-"}}), id="no-name-yet"),
    pytest.param(text({**POD, "metadata": {"name": ""}}), id="empty-name"),
    pytest.param(text({**POD, "metadata": {"name": "wéb"}}), id="name-beyond-ascii"),
    pytest.param(text({**POD, "metadata": {"name": "a\x01"}}), id="name-with-control"),
    pytest.param(text({**POD, "metadata": {"name": None}}), id="null-name"),
    pytest.param(text({**POD, "metadata": None}), id="null-metadata"),
    pytest.param(text({**POD, "metadata": {"deletionTimestamp": "x"}}), id="leaving"),
    pytest.param(text({**POD, "data": {"a": "b"}}), id="other-member"),
    pytest.param(text({**POD, "spec": {"a": "\\u003c$b"}}), id="escape"),
    pytest.param(text({**POD, "spec": {"$a": "␛"}}), id="not-plain"),
    pytest.param(text({**POD, "spec": {"a": "x" * PLAIN_LENGTH}}), id="long"),
    pytest.param(text(None), id="no-object"),
    pytest.param(text(None, oldObject=POD, operation="DELETE"), id="delete"),
    pytest.param(text(oldObject=POD, operation="UPDATE"), id="update"),
    pytest.param(text(name="other"), id="other-request-name"),
]


@pytest.mark.parametrize(
    ("own", "other"),
    [("u-1", "u-2"), ("web-1", "web-2"), ("o-1", "o-2"), ("2026", "2027"), ("x2x2x", "abcde")],
    ids=["uid", "name", "pod-uid", "times", "volume"],
)
def test_what_is_a_pods_own_keeps_no_two_reviews_apart(own: str, other: str) -> None:
    body = text({**POD, "spec": SPEC})
    first = [read_review(body.encode()) for _ in range(2)][-1]
    assert read_review(body.replace(own, other).encode()).alike is first.alike is not None


@pytest.mark.parametrize("body", BODIES)
def test_each_is_read_as_the_exact_reader_reads_it(body: str) -> None:
    for _ in range(3):
        assert same(read_review(body.encode()), body)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        pytest.param('"name":"web-1"', '"name":"x","name":"web-1"', 400, id="name-twice"),
        pytest.param('"spec":', '"spec":{},"spec":', 400, id="spec-twice"),
        pytest.param('"name":"c"', '"name":"c","name":"c"', 400, id="inner-name-twice"),
        pytest.param('"dryRun":false', '"dryRun":NaN', 400, id="no-json"),
        pytest.param("admission.k8s.io/v1", "admission.k8s.io/v2", 400, id="other-version"),
        pytest.param('"CREATE"', '"MAKE"', 422, id="other-operation"),
        pytest.param('"dryRun":false', '"dryRun":1', 422, id="no-flag"),
    ],
)
def test_what_the_exact_reader_refuses_is_refused_each_time(old: str, new: str, code: int) -> None:
    read_review(text().encode())
    for _ in range(3):
        with pytest.raises(ReviewError) as caught:
            read_review(text().replace(old, new).encode())
        assert (caught.value.code, caught.value.uid) == (code, "u-1")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ReviewError) as caught:
        read_review(text().encode().replace(b"web-1", b"\xff"))
    assert caught.value.code == 400


@pytest.mark.parametrize("uid", ['""', "null", "1"])
def test_a_review_without_an_uid_is_none(uid: str) -> None:
    for body in (text().replace('"u-1"', uid), text().replace('"uid":"u-1",', "")):
        with pytest.raises(NotAReviewError):
            read_review(body.encode())


def test_pods_of_one_text_are_judged_once() -> None:
    known = PolicySet(namespace="team-000")
    reviews = [read_review(fresh()) for _ in range(3)][1:]
    found = [
        prepare(each.request, known, phase=Phase.VALIDATE, alike=each.alike).before
        for each in reviews
    ]
    assert found[0] is found[1]


@pytest.mark.parametrize(
    "pod",
    [
        {**POD, "metadata": {**POD["metadata"], "labels": {"app": TOKEN}}},
        {**POD, "metadata": {**POD["metadata"], "annotations": {LAST_APPLIED: TOKEN}}},
        {**POD, "spec": {"containers": [{"name": TOKEN}]}},
        {**POD, "spec": {"containers": [], "priorityClassName": TOKEN}},
    ],
    ids=["label", "last-applied", "container", "priority-class"],
)
def test_a_volume_named_where_rules_read_is_no_own_text(pod: Any) -> None:
    bodies = [text(pod), text(pod).replace(TOKEN, f"{TOKEN[:-5]}abcde")]
    for body in bodies * 3:
        read = read_review(body.encode())
        assert read.alike is None
        assert dumps(read.request.object) == dumps(loads(body)["request"]["object"])


@pytest.mark.parametrize(
    "changes",
    [{"operation": "UPDATE", "oldObject": POD}, {"oldObject": POD}, {"subResource": "status"}],
)
def test_only_new_pods_are_alike(changes: dict[str, Any]) -> None:
    assert [read_review(text(**changes).encode()).alike for _ in range(3)] == [None] * 3


def test_what_is_long_or_odd_in_a_column_is_no_own_text() -> None:
    for name in ('a"b', "a\\b", "x" * 300):
        body = text({**POD, "metadata": {**POD["metadata"], "name": name}})
        assert [read_review(body.encode()).alike for _ in range(3)] == [None] * 3


def test_texts_of_long_reviews_take_bounded_room() -> None:
    for each in range(300):
        metadata = {**POD["metadata"], "labels": {"app": f"{each:05}" + "x" * 12_000}}
        reviews = [read_review(text({**POD, "metadata": metadata}).encode()) for _ in range(2)]
        assert reviews[1].alike is not None
    assert alike._shared_review.taken <= 16 * 1024 * 1024
