"""A draft among the stored policies: hints about it, a pod that shows each, and any object's fate.

Every verdict is the chain's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from policies import policy_set as stored
from policies.editing.kinds import LIMITED_RESOURCES
from policies.engine import chain
from policies.engine.decision import Reason
from policies.engine.limit_range import decode_limit_range
from policies.engine.metadata_policy import decode_metadata_policy
from policies.engine.policy import decode_enforcement
from policies.engine.request import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
    Phase,
)
from policies.engine.resource_quota import decode_limited_resources, decode_resource_quota
from policies.lints import BUILT_IN_CLASSES, LintCode, lint_namespace
from policies.manifests.documents import parse_documents
from policies.manifests.emitter import render_documents
from policies.manifests.problems import ManifestError
from policies.models import PriorityClass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policies.editing.drafts import Place
    from policies.engine.decision import Decision
    from policies.engine.policy import LimitRange, MetadataPolicy, PolicySet, ResourceQuota
    from policies.lints import Lint

_FIELDS: Final = {
    "LimitRange": "limit_ranges",
    "MetadataPolicy": "metadata_policies",
    "ResourceQuota": "resource_quotas",
}
_SHOWN_BY: Final = {
    LintCode.UNSATISFIABLE_RANGES: {Reason.MIN_CONSTRAINT, Reason.MAX_CONSTRAINT},
    LintCode.LIMITS_WITHOUT_DEFAULT: {Reason.MUST_SPECIFY},
    LintCode.UNCOVERED_SCOPE_VALUE: {Reason.INSUFFICIENT_QUOTA, Reason.UNCOVERED_SCOPE},
    LintCode.HARD_BELOW_USED: {Reason.EXCEEDED_QUOTA, Reason.MUST_SPECIFY},
    LintCode.RULE_ALWAYS_FIRES: {Reason.REJECTED_BY_RULE},
}
"""Which refusals show what a lint speaks of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A lint, whether the draft brought it, and a pod that shows it with what it is told."""

    lint: Lint
    is_new: bool
    example: str = ""
    message: str = ""


def with_draft(before: PolicySet, place: Place, manifest: Mapping[str, Any] | None) -> PolicySet:
    """The policies of a namespace with the draft in its place; None takes it away."""
    if place.kind is LIMITED_RESOURCES:
        entries = (manifest or {}).get("limitedResources") or []
        return replace(before, limited_resources=decode_limited_resources(entries))
    if (name := _FIELDS.get(place.kind.name)) is None:
        return before
    given: tuple[Any, ...] = getattr(before, name)
    old = next((policy for policy in given if policy.name == place.name), None)
    others = [policy for policy in given if policy is not old]
    drafted = [] if manifest is None else [_decoded(place, manifest, old)]
    together = sorted([*others, *drafted], key=lambda policy: policy.name.encode())
    change: Any = {name: tuple(together)}
    return replace(before, **change)


def _decoded(
    place: Place, manifest: Mapping[str, Any], old: Any
) -> LimitRange | MetadataPolicy | ResourceQuota:
    metadata = manifest.get("metadata") or {}
    mode = decode_enforcement(metadata.get("annotations"))
    if place.kind.name == "LimitRange":
        return replace(decode_limit_range(manifest), enforcement=mode)
    if place.kind.name == "MetadataPolicy":
        return decode_metadata_policy(manifest)
    quota = decode_resource_quota({**manifest, "status": None})
    used = {name: old.used[name] for name in quota.used if name in old.used} if old else {}
    return replace(quota, used={**quota.used, **used})


def load(place: Place) -> PolicySet:
    """The stored policies of the draft's namespace."""
    return stored.load(place.cluster.name, place.namespace_name)


def hints(place: Place, manifest: Mapping[str, Any], before: PolicySet) -> list[Hint]:
    """What is probably not meant about the draft, or about others because of it."""
    names = PriorityClass.objects.filter(cluster=place.cluster).values_list("name", flat=True)
    classes = BUILT_IN_CLASSES | frozenset(names)
    after = with_draft(before, place, manifest)
    known = {(lint.code, lint.message) for lint in lint_namespace(before, priority_classes=classes)}
    name = (manifest.get("metadata") or {}).get("name") or ""
    found = []
    for lint in lint_namespace(after, priority_classes=classes):
        is_new = (lint.code, lint.message) not in known
        if is_new or (lint.policy.kind, lint.policy.name) == (place.kind.name, name):
            pod, message = _example(lint, after, sorted(classes))
            text = render_documents([pod]) if pod else ""
            found.append(Hint(lint=lint, is_new=is_new, example=text, message=message))
    return found


def _example(
    lint: Lint, policies: PolicySet, classes: list[str]
) -> tuple[dict[str, Any] | None, str]:
    """A pod whose refusal shows what the lint speaks of, asked of the chain; None for none."""
    wanted = _SHOWN_BY.get(lint.code, set())
    for pod in _candidates(policies, classes) if wanted else ():
        decision = judge(policies, pod)
        if {each.reason for each in decision.violations + decision.observed} & wanted:
            return pod, decision.message
    return None, ""


def _candidates(policies: PolicySet, classes: list[str]) -> Iterator[dict[str, Any]]:
    yield pod_of({})
    for name in classes:
        yield pod_of({}, priorityClassName=name)
    for limit_range in policies.limit_ranges:
        for item in limit_range.items:
            amounts = {name: str(quantity) for name, quantity in item.min.items()}
            if amounts:
                yield pod_of({"requests": amounts, "limits": amounts})


def pod_of(resources: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod of one container."""
    container: dict[str, Any] = {"name": "app", "image": "example/app:1"}
    container |= {"resources": resources} if resources else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "example"},
        "spec": {"containers": [container], **spec},
    }


def judge(policies: PolicySet, obj: Mapping[str, Any]) -> Decision:
    """What the chain says of a new object under these policies."""
    metadata = obj.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    name = str(metadata.get("name") or "")
    group, _, version = str(obj.get("apiVersion") or "v1").rpartition("/")
    kind = str(obj.get("kind") or "Pod")
    request = AdmissionRequest(
        kind=GroupVersionKind(group=group, version=version, kind=kind),
        resource=GroupVersionResource(group=group, version=version, resource=_plural(kind)),
        name=name,
        namespace=policies.namespace,
        operation=Operation.CREATE,
        object={**obj, "metadata": {**metadata, "namespace": policies.namespace}},
    )
    return chain.admit(request, policies, phase=Phase.BOTH)


def _plural(kind: str) -> str:
    """A kind's resource, as Kubernetes' own kinds are called."""
    word = kind.lower()
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def tried(
    place: Place, manifest: Mapping[str, Any], before: PolicySet | None, text: str
) -> dict[str, Any]:
    """What a pasted object is told with the draft, and what it is told now."""
    if before is None:
        return {}
    try:
        documents = parse_documents(text, "pod")
    except ManifestError as error:
        return {"try_error": str(error)}
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        return {"try_error": "paste one object, such as a pod"}
    obj = documents[0].value
    after = with_draft(before, place, manifest)
    return {"verdict": judge(after, obj), "verdict_now": judge(before, obj)}
