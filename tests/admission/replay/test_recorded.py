"""Decisions on record that cannot be judged are told apart by their cause."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from admission.record import write
from admission.replay.alike import cut_down
from admission.replay.judge import ReplayJudge
from admission.replay.policies import Proposal, ReplayPolicies, drafted
from admission.replay.recorded import PastDecision, Unreplayed
from tests.builders import container, metadata_policy, pod, request

if TYPE_CHECKING:
    from engine.request import AdmissionRequest

CREATED = dt.datetime(2026, 9, 21, 14, tzinfo=dt.UTC)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def recorded(asked: AdmissionRequest, **columns: Any) -> PastDecision:
    stored = write.columns_of(asked)["request"]
    whole = PastDecision(
        id="065wzsb800000000",
        created=CREATED,
        namespace="ns",
        phase="mutate",
        user="u",
        name="p",
        verdict="allowed",
        reasons="",
        policy_revision=1,
        request=stored,
    )
    return whole._replace(**columns)


def judge(*manifests: Any) -> ReplayJudge:
    base = ReplayPolicies(by_namespace={})
    return ReplayJudge(base, drafted(base, Proposal(manifests=manifests)))


def annotated(**annotations: str) -> AdmissionRequest:
    return request(pod(container(), annotations=annotations))


def selecting(key: str) -> Any:
    selector = {"matchExpressions": [{"key": key, "operator": "In", "values": ["x"]}]}
    predicate = {"annotationSelector": selector}
    return metadata_policy({"policyPredicate": predicate, "policyAction": {"reject": True}})


def setting(key: str) -> Any:
    return metadata_policy({"policyAction": {"updatedAnnotations": {key: "x" * 600}}})


def test_a_whole_request_is_judged() -> None:
    assert not isinstance(judge().compare(recorded(annotated())), Unreplayed)


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"policy_revision": 0}, Unreplayed.NOT_JUDGED),
        ({"request": "{}"}, Unreplayed.UNREADABLE),
        ({"request": "[]"}, Unreplayed.UNREADABLE),
        ({"request": "{"}, Unreplayed.UNREADABLE),
        ({"request": '{"kind": {"kind": 5}}'}, Unreplayed.UNREADABLE),
        ({"request": '{"$cut": ["trace"]}'}, Unreplayed.CUT),
        ({"request": '{"object": {"$cut": {"bytes": 1}}}'}, Unreplayed.CUT),
    ],
)
def test_what_cannot_be_judged_has_its_cause(changed: Any, cause: Unreplayed) -> None:
    assert judge().compare(recorded(annotated(), **changed)) is cause


@pytest.mark.parametrize("policy", [selecting("c"), setting("c")])
def test_a_long_annotation_that_a_policy_names_is_redacted(policy: Any) -> None:
    long = recorded(annotated(c="x" * 600))
    assert judge(policy).compare(long) is Unreplayed.REDACTED
    assert not isinstance(judge(policy).compare(recorded(annotated(c="x"))), Unreplayed)


def test_one_that_no_policy_names_is_judged() -> None:
    long = recorded(annotated(c="x" * 600))
    assert not isinstance(judge(selecting("d")).compare(long), Unreplayed)


def test_what_kubectl_keeps_is_redacted_though_short() -> None:
    short = recorded(request(pod(container(), annotations={LAST_APPLIED: "x"})))
    assert judge(selecting(LAST_APPLIED)).compare(short) is Unreplayed.REDACTED


def test_a_long_text_outside_of_annotations_is_redacted() -> None:
    long = recorded(request(pod(container(), labels={"a": "x" * 17_000})))
    assert judge().compare(long) is Unreplayed.REDACTED


def test_an_object_under_a_kind_that_the_record_does_not_keep_is_not_judged() -> None:
    assert judge().compare(recorded(request(pod(), kind="Odd"))) is Unreplayed.KIND_NOT_KEPT
    binding = request(pod(), kind="Binding", sub_resource="binding")
    assert not isinstance(judge().compare(recorded(binding)), Unreplayed)


def test_policies_that_cannot_be_read_are_a_cause() -> None:
    base = ReplayPolicies(by_namespace={}, unreadable=frozenset({"ns"}))
    assert ReplayJudge(base, base).compare(recorded(annotated())) is Unreplayed.POLICIES_UNREADABLE


def test_pods_of_one_template_are_judged_once() -> None:
    alone = judge()
    for name in ("web-1", "web-2"):
        stored = request(pod(container(), name=name, uid=name, resourceVersion=name))
        alone.compare(recorded(dataclasses.replace(stored, name=name, uid=name)))
    assert alone.judged == 1


def test_versions_of_an_object_are_alike() -> None:
    keys = set()
    for version in ("1", "77"):
        made = request(pod(), old_object=pod(resourceVersion=version))
        stored = orjson.loads(recorded(made).request)
        keys.add(cut_down(stored, phase="validate", moment=1))
    assert len(keys) == 1
