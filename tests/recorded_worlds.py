"""Random worlds, each by its number: policies, a proposal, and requests on record under them."""

from __future__ import annotations

import copy
import datetime as dt
import random
import time
from dataclasses import dataclass
from typing import Any

from admission.models.decision_id import encode, moment
from admission.record import write
from admission.replay.policies import Proposal, ReplayPolicies
from admission.replay.recorded import PastDecision
from admission.wire.review import NotAReviewError, ReviewError, parse_request
from engine.chain import prepare
from engine.errors import DecodeError
from engine.policy import Authority, PolicySet
from engine.policy_manifests import build_policy_set
from engine.request import AdmissionRequest, Phase
from tests.builders import Manifest, container, limit_range, metadata_policy
from tests.mutations import mutated
from tests.reviews import new_pod, quota, review

NAMESPACE = "ns"
BEGIN = 1_790_000_000_000  # milliseconds
KINDS = ("LimitRange", "ResourceQuota", "MetadataPolicy")
AMOUNTS = ("100m", "250m", "500m", "1", "2")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it was asked, its phase and moment, and its row on record."""

    request: AdmissionRequest
    phase: Phase
    now: int
    recorded: PastDecision


@dataclass(frozen=True, kw_only=True)
class World:
    """Stored and proposed manifests, and what was asked under the stored ones."""

    manifests: tuple[Manifest, ...]
    proposal: Proposal
    after: tuple[Manifest, ...]
    limited: tuple[Manifest, ...]
    limited_after: tuple[Manifest, ...]
    authority: Authority
    asked: tuple[Asked, ...]

    @property
    def base(self) -> ReplayPolicies:
        policies = policy_set(self.manifests, self.limited, self.authority)
        return ReplayPolicies(by_namespace={NAMESPACE: policies})


def policy_set(
    manifests: tuple[Manifest, ...], limited: tuple[Manifest, ...], authority: Authority
) -> PolicySet:
    """What a portal with these policies stored decides by; nothing is used of any quota."""
    known = [_with_status(each) for each in manifests]
    made = build_policy_set(known, list(limited), namespace=NAMESPACE)
    return PolicySet(
        namespace=NAMESPACE,
        limit_ranges=made.limit_ranges,
        metadata_policies=made.metadata_policies,
        resource_quotas=made.resource_quotas,
        limited_resources=made.limited_resources,
        authority=authority,
    )


def _with_status(manifest: Manifest) -> Manifest:
    if manifest["kind"] != "ResourceQuota":
        return manifest
    hard = manifest["spec"]["hard"]
    return {**manifest, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}


def world(number: int, *, requests: int = 12) -> World:
    """The world of that number: the same one each time."""
    dice = random.Random(number)  # noqa: S311 - repeatable on purpose
    manifests = {_key(each): each for each in (_policy(dice, i) for i in range(dice.randrange(5)))}
    proposed = {_key(each): each for each in (_policy(dice, i) for i in range(dice.randrange(4)))}
    gone = [key for key in manifests if dice.random() < 0.25 and key not in proposed]
    after = {**manifests, **proposed}
    for key in gone:
        del after[key]
    limited, limited_after = _limited(dice), _limited(dice)
    changes_limits = dice.random() < 0.3
    authority = dice.choice((Authority.PORTAL, Authority.PORTAL, Authority.NATIVE))
    policies = policy_set(tuple(manifests.values()), limited, authority)
    asked = [_asked(dice, number, at, policies) for at in range(requests)]
    return World(
        manifests=tuple(manifests.values()),
        proposal=Proposal(
            manifests=tuple(proposed.values()),
            deletions=tuple((kind, NAMESPACE, name) for kind, name in gone),
            limited_resources=limited_after if changes_limits else None,
        ),
        after=tuple(after.values()),
        limited=limited,
        limited_after=limited_after if changes_limits else limited,
        authority=authority,
        asked=tuple(each for each in asked if each),
    )


def _key(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _policy(dice: random.Random, number: int) -> Manifest:
    name = f"p{number % 3}"
    make = dice.choice((_range, _range, _quota, _metadata, _metadata))
    manifest = make(dice, name)
    mode = dice.choice((None, None, None, "warn", "audit"))
    if mode:
        manifest["metadata"]["annotations"] = {"policy.gatehouse.dev/enforcement": mode}
    return manifest


def _range(dice: random.Random, name: str) -> Manifest:
    item: Manifest = {"type": dice.choice(("Container", "Container", "Pod"))}
    for bound in ("max", "min"):
        if dice.random() < 0.5:
            item[bound] = {"cpu": dice.choice(AMOUNTS), "memory": dice.choice(("1Gi", "2Gi"))}
    if item["type"] == "Container" and dice.random() < 0.5:
        item["defaultRequest"] = {"cpu": dice.choice(AMOUNTS[:3])}
        item["default"] = {"cpu": dice.choice(AMOUNTS), "memory": "1Gi"}
    claims = {"type": "PersistentVolumeClaim", "max": {"storage": dice.choice(("1", "5Gi"))}}
    return limit_range(item, *([claims] if dice.random() < 0.4 else []), name=name)


def _quota(dice: random.Random, name: str) -> Manifest:
    names = dice.sample(
        ["pods", "requests.cpu", "limits.memory", "services", "count/deployments.apps", "cpu"], 2
    )
    spec: Manifest = {"hard": {each: dice.choice(("0", "1", "100")) for each in names}}
    scoped = dice.random()
    if scoped < 0.3:
        expression = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
        spec["scopeSelector"] = {"matchExpressions": [expression]}
        spec["hard"] = {"pods": dice.choice(("0", "5"))}
    elif scoped < 0.5:
        spec["scopes"] = [dice.choice(("BestEffort", "NotBestEffort", "Terminating"))]
        spec["hard"] = {"pods": "5"}
    return quota(name, **spec)


def _metadata(dice: random.Random, name: str) -> Manifest:
    rules = []
    for _ in range(dice.choice((1, 1, 2, 3))):
        predicate: Manifest = {}
        if dice.random() < 0.7:
            predicate["labelSelector"] = {"matchLabels": {"a": dice.choice(("0", "1", "b"))}}
        if dice.random() < 0.4:
            expression = {"key": dice.choice(("c", "d")), "operator": "Exists"}
            if dice.random() < 0.5:
                expression = {"key": "c", "operator": "In", "values": ["d", "x"]}
            predicate["annotationSelector"] = {"matchExpressions": [expression]}
        action: Manifest = {"reject": True}
        if dice.random() < 0.6:
            action = {"updatedLabels": {"seen": dice.choice(("yes", "no"))}}
        if dice.random() < 0.2:
            action = {"updatedAnnotations": {"c": "x"}}
        rules.append({"policyPredicate": predicate, "policyAction": action})
    modes = {"strict": dice.random() < 0.5, "ratchet": dice.random() < 0.5}
    return metadata_policy(*rules, name=name, **modes)


def _limited(dice: random.Random) -> tuple[Manifest, ...]:
    if dice.random() < 0.6:
        return ()
    if dice.random() < 0.5:
        return ({"resource": "pods", "matchContains": ["cpu"]},)
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    return ({"resource": "pods", "matchScopes": [scope]},)


def _asked(dice: random.Random, number: int, at: int, policies: PolicySet) -> Asked | None:
    milliseconds = BEGIN + number * 1_000_000 + at * 1_000
    phase = dice.choice((Phase.MUTATE, Phase.VALIDATE, Phase.VALIDATE))
    if dice.random() < 0.35:
        body: Any = mutated(dice.randrange(1_000_000))[0]
    else:
        body = _review(dice, at)
    try:
        request = parse_request(body)
    except (ReviewError, NotAReviewError, DecodeError, ValueError):
        return None
    if request.namespace != NAMESPACE:
        return None
    now = milliseconds // 1000
    decision = prepare(request, policies, phase=phase, now=now).decide()
    row = write.row(
        decision,
        decision_id=encode(milliseconds, at),
        request_columns=write.columns_of(request),
        circumstances=write.Circumstances(
            cluster="demo",
            phase=phase,
            client="",
            started=time.monotonic_ns(),
            policy_revision=1,
            policies=write.columns_of_policies(policies),
        ),
    )
    return Asked(request=request, phase=phase, now=now, recorded=recorded_of(row))


def recorded_of(row: Any) -> PastDecision:
    """A row of the record as a replay reads it."""
    columns = {name: row[name] for name in PastDecision._fields if name != "created"}
    created = moment(row["id"]).astimezone(dt.UTC)
    return PastDecision(**{**columns, "created": created})


def _review(dice: random.Random, at: int) -> Any:
    pod = _pod(dice, at)
    chosen = dice.random()
    if chosen < 0.2:
        return _workload(pod, at)
    if chosen < 0.45:
        return _update(dice, pod)
    if chosen < 0.5:
        return review(None, operation="DELETE", oldObject=pod, object=None)
    return review(pod, dryRun=dice.random() < 0.1)


def _pod(dice: random.Random, at: int) -> Manifest:
    resources: Manifest = {}
    if dice.random() < 0.8:
        resources["requests"] = {"cpu": dice.choice(AMOUNTS)}
    if dice.random() < 0.6:
        resources["limits"] = {
            "cpu": dice.choice(("1", "2")),
            "memory": dice.choice(("1Gi", "2Gi")),
        }
    pod = new_pod(f"web-{dice.choice('xyz')}{at}", container(**resources))
    pod["metadata"]["labels"] = {"a": dice.choice(("0", "1", "b"))}
    if dice.random() < 0.4:
        long_text = dice.choice(("d", "x", "y" * 600))
        pod["metadata"]["annotations"] = {dice.choice("cde"): long_text}
    if dice.random() < 0.3:
        pod["spec"]["priorityClassName"] = "high"
    return pod


def _update(dice: random.Random, pod: Manifest) -> Any:
    old = copy.deepcopy(pod)
    old["metadata"]["resourceVersion"] = dice.choice(("", "1", "77"))
    pod["metadata"]["labels"] = {"a": dice.choice(("0", "1", "b"))}
    if dice.random() < 0.4:
        for each in (old, pod):
            each["metadata"]["deletionTimestamp"] = "2026-09-21T14:13:21Z"
    sub_resource = dice.choice(("", "", "resize", "status"))
    return review(pod, operation="UPDATE", oldObject=old, subResource=sub_resource)


def _workload(pod: Manifest, at: int) -> Any:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"d{at}", "uid": f"du{at}", "labels": pod["metadata"]["labels"]},
        "spec": {"replicas": 2, "template": {"metadata": {}, "spec": pod["spec"]}},
    }
    return review(
        deployment,
        kind={"group": "apps", "version": "v1", "kind": "Deployment"},
        resource={"group": "apps", "version": "v1", "resource": "deployments"},
    )
