"""Laws of the chain: it never raises, mutates once and for all, and patches what it changed."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chain import admit, prepare
from engine.limit_range import decode_limit_range
from engine.metadata_policy import decode_metadata_policy
from engine.pod import default_pod
from engine.policy import PolicySet
from engine.request import Operation, Phase
from engine.resource_list import parse
from engine.resource_quota import decode_limited_resources, decode_resource_quota
from engine.wire import RawNumber, dumps
from tests.builders import limit_range, metadata_policy, pod, request, resource_quota

pytestmark = pytest.mark.no_cover  # thousands of cases: tracing each line of them takes minutes
texts = st.sampled_from(["", "a", "cpu", "1", "500m", "1Gi", "Always", "x y", "\x00", "\ud800"])
keys = st.sampled_from(
    "metadata spec status labels annotations containers initContainers resources requests limits "
    "cpu memory name restartPolicy overhead template hard scopes scopeSelector matchExpressions "
    "rules limits type max min default ports requests storage phase conditions".split()
)
scalars = st.one_of(
    st.none(), st.booleans(), texts, st.sampled_from([RawNumber("1e3"), RawNumber("1")])
)
shapes = st.recursive(
    scalars, lambda s: st.lists(s, max_size=3) | st.dictionaries(keys, s, max_size=4), max_leaves=25
)
objects = st.dictionaries(keys, shapes, max_size=5)
resources = st.sampled_from(
    [
        ("Pod", "pods", ""),
        ("Pod", "pods", "resize"),
        ("Pod", "pods", "status"),
        ("PersistentVolumeClaim", "persistentvolumeclaims", ""),
        ("Service", "services", ""),
        ("Deployment", "deployments.apps", ""),
        ("CronJob", "cronjobs.batch", ""),
        ("LimitRange", "limitranges", ""),
        ("ResourceQuota", "resourcequotas", ""),
        ("MetadataPolicy", "metadatapolicies.policy.gatehouse.dev", ""),
        ("ResourceClaim", "resourceclaims.resource.k8s.io", ""),
    ]
)
amounts = st.sampled_from(["0", "100m", "500m", "1", "2"])
sides = st.dictionaries(st.sampled_from(["cpu", "memory"]), amounts, max_size=2)
containers = st.builds(
    lambda requests, limits: {"name": "c", "resources": {"requests": requests, "limits": limits}},
    sides,
    sides,
)
pods = st.builds(lambda some: pod(*some), st.lists(containers, min_size=1, max_size=3))
POLICIES = PolicySet(
    namespace="ns",
    limit_ranges=(
        decode_limit_range(
            limit_range(
                {"type": "Container", "max": {"cpu": "1"}, "default": {"memory": "1"}},
                {"type": "Pod", "min": {"cpu": "100m"}},
            )
        ),
    ),
    metadata_policies=(
        decode_metadata_policy(
            metadata_policy(
                {"policyAction": {"updatedLabels": {"a": "b"}, "updatedAnnotations": {"c/d": "e"}}}
            )
        ),
    ),
    resource_quotas=(
        decode_resource_quota(resource_quota({"pods": "1", "requests.cpu": "1", "count/x.y": "1"})),
    ),
    limited_resources=decode_limited_resources(
        [
            {
                "resource": "pods",
                "matchContains": ["cpu"],
                "matchScopes": [{"scopeName": "PriorityClass", "operator": "Exists"}],
            }
        ]
    ),
)


@given(
    obj=objects,
    old=st.none() | objects,
    asked=resources,
    operation=st.sampled_from(Operation),
    phase=st.sampled_from(Phase),
)
def test_chain_never_raises(obj: Any, old: Any, asked: Any, operation: Any, phase: Any) -> None:
    kind, resource, sub = asked
    given_request = request(
        obj, kind=kind, resource=resource, sub_resource=sub, operation=operation, old_object=old
    )
    decision = admit(given_request, POLICIES, phase=phase, now="2026-01-01T00:00:00Z")
    assert decision.allowed is not bool(decision.violations)
    assert decision.allowed or decision.code >= 400


def with_ints(value: Any) -> Any:
    """The same JSON with its whole numbers as ``int``."""
    if isinstance(value, dict):
        return {key: with_ints(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_ints(item) for item in value]
    return int(value) if isinstance(value, RawNumber) and value.isdigit() else value


@given(obj=objects, old=st.none() | objects, asked=resources, phase=st.sampled_from(Phase))
def test_int_is_judged_like_its_text(obj: Any, old: Any, asked: Any, phase: Any) -> None:
    kind, resource, sub = asked
    operation = Operation.CREATE if old is None else Operation.UPDATE
    more = {"kind": kind, "resource": resource, "sub_resource": sub, "operation": operation}
    texts, ints = (
        admit(request(one, old_object=other, **more), POLICIES, phase=phase)
        for one, other in ((obj, old), (with_ints(obj), with_ints(old)))
    )
    assert with_ints(texts.object) == with_ints(ints.object)
    assert dataclasses.replace(texts, object=None) == dataclasses.replace(ints, object=None)


@given(obj=pods, used=sides, phase=st.sampled_from([Phase.VALIDATE, Phase.BOTH]))
def test_amounts_told_late_decide_like_the_quotas_own(obj: Any, used: Any, phase: Any) -> None:
    (quota,) = POLICIES.resource_quotas
    names = {"cpu": "requests.cpu", "memory": "pods"}
    told = {**quota.used, **parse({names[name]: amount for name, amount in used.items()})}
    own = dataclasses.replace(POLICIES, resource_quotas=(dataclasses.replace(quota, used=told),))
    late = prepare(request(obj), POLICIES, phase=phase).decide({quota.name: told})
    assert late == admit(request(obj), own, phase=phase)


@given(obj=pods)
def test_mutating_twice_is_mutating_once(obj: Any) -> None:
    once = admit(request(obj), POLICIES, phase=Phase.MUTATE)
    twice = admit(request(dict(once.object or {})), POLICIES, phase=Phase.MUTATE)
    assert twice.patch == ()
    assert twice.object == once.object


@given(obj=pods)
def test_patch_makes_the_object_of_the_answer(obj: Any) -> None:
    received = default_pod(obj)
    decision = admit(request(received), POLICIES, phase=Phase.MUTATE)
    operations = [operation.to_json() for operation in decision.patch]
    assert jsonpatch.apply_patch(json.loads(dumps(received)), operations) == decision.object


@given(obj=pods)
def test_arguments_are_never_changed(obj: Any) -> None:
    before = dumps(obj)
    admit(request(obj), POLICIES, phase=Phase.BOTH)
    assert dumps(obj) == before


@given(obj=pods, phase=st.sampled_from(Phase))
def test_reject_means_no_patch(obj: Any, phase: Any) -> None:
    reject = decode_metadata_policy(
        metadata_policy({"policyAction": {"reject": True}}, strict=True)
    )
    refusing = dataclasses.replace(POLICIES, metadata_policies=(reject,))
    decision = admit(request(obj), refusing, phase=phase)
    assert not decision.allowed
    assert decision.patch == ()


# What pods of one template differ in, and what tells two templates apart.
own = st.fixed_dictionaries(
    {"name": st.sampled_from(["web-1", "web-2"]), "uid": st.sampled_from(["u1", "u2"])}
)
marks = st.dictionaries(st.sampled_from(["team", "tier"]), st.sampled_from(["a", "b"]), max_size=2)
specs = st.fixed_dictionaries(
    {},
    optional={
        "priorityClassName": st.sampled_from(["high", "low"]),
        "activeDeadlineSeconds": st.integers(0, 2),
        "overhead": sides,
        "resources": st.fixed_dictionaries({"requests": sides}),
        "initContainers": st.lists(containers, max_size=1),
        "volumes": st.just([{"name": "kube-api-access-x"}]),
        "affinity": shapes,
    },
)


@given(
    made=st.lists(st.tuples(pods, own, marks, specs), min_size=2, max_size=5),
    phase=st.sampled_from(Phase),
    dry_run=st.booleans(),
)
def test_pods_that_were_judged_before_change_no_verdict(
    made: Any, phase: Any, *, dry_run: bool
) -> None:
    shared = dataclasses.replace(POLICIES)
    for obj, names, labels, spec in made:
        metadata = {**obj["metadata"], **names, "labels": labels}
        asked = request({**obj, "metadata": metadata, "spec": {**obj["spec"], **spec}})
        asked = dataclasses.replace(asked, dry_run=dry_run, name=names["name"])
        alone = dataclasses.replace(POLICIES)  # others were never asked under these very policies
        assert admit(asked, shared, phase=phase) == admit(asked, alone, phase=phase)
