"""Rows of the record filled in from a kept template equal those built from the decision."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from admission.record.redaction import redacted_request
from admission.record.templates import fill_in, template_of
from admission.wire import request_templates
from admission.wire.review import parse_request
from bench.review import fresh

if TYPE_CHECKING:
    from engine.request import AdmissionRequest

POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "web-1", "namespace": "ns", "uid": "o-1", "creationTimestamp": "t"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
KUBE_VOLUME = {"name": "kube-api-access-abcde", "projected": {}}
LIMITS = {
    **POD,
    "kind": "LimitRange",
    "spec": {"volumes": [KUBE_VOLUME], "containers": [{"volumeMounts": [KUBE_VOLUME]}]},
}


@pytest.fixture(autouse=True)
def _luck() -> None:
    request_templates.CUT_BUDGET.missed = 0


def read(obj: Any, *, name: str | None = "web-1", **metadata: str) -> AdmissionRequest:
    """A request that was read by a template, with these texts of its own."""
    obj = {**obj, "metadata": {**obj["metadata"], **metadata}}
    asked = {
        "uid": metadata.get("uid", "u-1"),
        "kind": {"group": "", "version": "v1", "kind": obj["kind"]},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        **({} if name is None else {"name": name}),
        "namespace": "ns",
        "operation": "CREATE",
        "userInfo": {"username": "u", "groups": ["g"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": asked}
    body = json.dumps(review, separators=(",", ":")).encode()
    return [parse_request(body) for _ in range(3)][-1]


@pytest.mark.parametrize(
    "request_",
    [
        read(POD),
        read(POD, name=None),
        read(POD, name='a"b\\c', uid='"\\'),
        read({**POD, "spec": {"volumes": [KUBE_VOLUME], "containers": []}}),
        read(LIMITS),
    ],
    ids=["usual", "without-name", "quotes", "volume", "volume-kept"],
)
def test_cast_is_what_redaction_gives(request_: AdmissionRequest) -> None:
    template = template_of(request_)
    assert template is not None
    assert [fill_in(request_, template) for _ in range(2)] == [redacted_request(request_)] * 2


def test_pods_of_one_template_are_cast_apart() -> None:
    first, second = [parse_request(fresh()) for _ in range(4)][-2:]
    template = template_of(first)
    assert template is not None
    assert template_of(second) is template
    assert redacted_request(first) == fill_in(first, template) != fill_in(second, template)


def test_changed_request_is_of_no_template() -> None:
    found = read(POD)
    assert template_of(dataclasses.replace(found, dry_run=True)) is None
    assert template_of(dataclasses.replace(found, user="other")) is None
    assert template_of(dataclasses.replace(found, object={**POD})) is None
    assert template_of(dataclasses.replace(found, likeness=None)) is None
