"""Reviews of one template are read once; what is read is what reading the whole of each gives."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from admission.wire import request_templates
from admission.wire.json_reader import PLAIN_LENGTH
from admission.wire.review import NotAReviewError, ReviewError, parse_request
from bench.review import fresh, template
from engine.chain import prepare
from engine.policy import PolicySet
from engine.request import Phase
from engine.wire import dumps, loads

if TYPE_CHECKING:
    from engine.request import AdmissionRequest

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


@pytest.fixture(autouse=True)
def _luck() -> None:
    request_templates.CUT_BUDGET.missed = 0


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


def same(quick: AdmissionRequest, body: str) -> bool:
    """Whether it is what the exact reader gives, members of the object in the same order."""
    exact = dataclasses.replace(parse_request(loads(body)), is_plain=quick.is_plain)
    if dumps((quick.object, quick.old_object)) != dumps((exact.object, exact.old_object)):
        return False
    blank = {"object": None, "old_object": None}
    return dataclasses.replace(quick, **blank) == dataclasses.replace(exact, **blank)


def test_reviews_of_a_template_share_all_but_their_own() -> None:
    parse_request(text().encode())
    one = parse_request(text().encode())
    other = parse_request(text().replace("u-1", "u-2").replace("web-1", "web-2").encode())
    assert (other.uid, other.name, other.display_name) == ("u-2", "web-2", "web-2")
    assert one.object is not None
    assert other.object is not None
    assert one.object["spec"] is other.object["spec"]
    assert one.object["metadata"]["name"] == "web-1"
    assert other.object["metadata"]["name"] == "web-2"
    assert one.likeness is not None
    assert other.likeness is not None
    assert one.likeness.template is other.likeness.template


def test_templates_share_what_they_have_in_common() -> None:
    spec = {"containers": [{"name": "shared"}]}
    bodies = [text({**POD, "spec": spec}, namespace=name).encode() for name in ("one", "two")]
    one, two = [parse_request(body).object or {} for body in bodies * 2][2:]
    assert one["spec"] is two["spec"]
    assert one["spec"] == spec
    assert one["metadata"] == two["metadata"] == POD["metadata"]


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


@pytest.mark.parametrize("body", BODIES)
def test_each_is_read_as_the_exact_reader_reads_it(body: str) -> None:
    for _ in range(3):
        assert same(parse_request(body.encode()), body)


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
    parse_request(text().encode())
    for _ in range(3):
        with pytest.raises(ReviewError) as caught:
            parse_request(text().replace(old, new).encode())
        assert (caught.value.code, caught.value.uid) == (code, "u-1")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ReviewError) as caught:
        parse_request(text().encode().replace(b"web-1", b"\xff"))
    assert caught.value.code == 400


@pytest.mark.parametrize("uid", ['""', "null", "1"])
def test_a_review_without_an_uid_is_none(uid: str) -> None:
    for body in (text().replace('"u-1"', uid), text().replace('"uid":"u-1",', "")):
        with pytest.raises(NotAReviewError):
            parse_request(body.encode())


def test_pods_of_one_template_are_judged_once() -> None:
    known = PolicySet(namespace="team-000")
    asked = [parse_request(fresh()) for _ in range(3)][1:]
    found = [prepare(one, known, phase=Phase.VALIDATE).before for one in asked]
    assert found[0] is found[1]


def test_a_copy_with_another_object_is_not_like_it() -> None:
    known = PolicySet(namespace="team-000")
    asked = [parse_request(fresh()) for _ in range(2)][1]
    assert asked.likeness is not None
    other = dataclasses.replace(asked, object=template()["request"]["object"] | {"spec": {}})
    found = [prepare(one, known, phase=Phase.VALIDATE).before for one in (asked, other)]
    assert found[0] is not found[1]


def test_where_no_template_comes_again_few_are_cut() -> None:
    bodies = [text(uid=str(place), name=f"a{place}", namespace=f"n{place}") for place in range(800)]
    assert sum(request_templates.cut(body.encode()) is not None for body in bodies) < 400
    # One in sixteen is cut: two of them until the template was seen to come again.
    asked = [parse_request(text().encode()) for _ in range(48)]
    assert asked[-1].likeness is not None
