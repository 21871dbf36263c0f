"""Hints beside a draft: its lints with example pods; a pasted object tried with it and without.

Every decision is the chain's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine import chain
from engine.decision import Reason
from engine.errors import DecodeError
from engine.request import Phase
from policies import simulation
from policies import snapshot as stored
from policies.lints import BUILT_IN_CLASSES, LintCode, lint_namespace
from policies.manifests.documents import ManifestError
from policies.manifests.render import render_documents, render_manifests
from policies.manifests.sources import parse_documents
from policies.models import PriorityClass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.decision import Decision
    from engine.policy import PolicySet
    from policies.drafts.draft import PolicyPlace
    from policies.lints import Lint

_SHOWN_BY: Final = {
    LintCode.UNSATISFIABLE_RANGES: {Reason.MIN_CONSTRAINT, Reason.MAX_CONSTRAINT},
    LintCode.LIMITS_WITHOUT_DEFAULT: {Reason.MUST_SPECIFY},
    LintCode.UNCOVERED_SCOPE_VALUE: {Reason.INSUFFICIENT_QUOTA, Reason.UNCOVERED_SCOPE},
    LintCode.HARD_BELOW_USED: {Reason.EXCEEDED_QUOTA, Reason.MUST_SPECIFY},
    LintCode.REFUSES_EVERYTHING: {Reason.REJECTED_BY_RULE},
}
"""The reasons of the refusals that demonstrate a lint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A lint, whether it comes with the draft, and a pod that demonstrates it."""

    lint: Lint
    is_new: bool
    example: str = ""
    message: str = ""


def load(place: PolicyPlace) -> PolicySet:
    """The stored policies of the draft's namespace."""
    return stored.load(place.cluster.name, place.namespace_name)


def hints(place: PolicyPlace, manifest: Mapping[str, Any], before: PolicySet) -> list[Hint]:
    """The lints of the draft, and those that other policies get by it."""
    class_names = PriorityClass.objects.filter(cluster=place.cluster).values_list("name", flat=True)
    classes = BUILT_IN_CLASSES | frozenset(class_names)
    after = simulation.with_unsaved(before, [manifest])
    known = {(lint.code, lint.message) for lint in lint_namespace(before, priority_classes=classes)}
    draft_name = (manifest.get("metadata") or {}).get("name") or ""
    shown_hints = []
    for lint in lint_namespace(after, priority_classes=classes):
        is_new = (lint.code, lint.message) not in known
        if is_new or (lint.policy.kind, lint.policy.name) == (place.kind.name, draft_name):
            pod, message = _example_pod(lint, after, sorted(classes))
            example = render_documents([pod]) if pod else ""
            shown_hints.append(Hint(lint=lint, is_new=is_new, example=example, message=message))
    return shown_hints


def _example_pod(
    lint: Lint, policies: PolicySet, classes: list[str]
) -> tuple[dict[str, Any] | None, str]:
    """A pod whose refusal demonstrates the lint, and the refusal's message; None without one."""
    shown_reasons = _SHOWN_BY.get(lint.code, set())
    # Plain pods first: the simplest one that is refused explains best.
    for pod in _candidate_pods(policies, classes) if shown_reasons else ():
        decision = judge(policies, pod)
        if {each.reason for each in decision.violations + decision.observed} & shown_reasons:
            return pod, decision.message
    return None, ""


def _candidate_pods(policies: PolicySet, classes: list[str]) -> Iterator[dict[str, Any]]:
    yield pod_of({})
    for name in classes:
        yield pod_of({}, priorityClassName=name)
    for limit_range in policies.limit_ranges:
        for item in limit_range.items:
            min_amounts = {name: str(quantity) for name, quantity in item.min.items()}
            if min_amounts:
                yield pod_of({"requests": min_amounts, "limits": min_amounts})


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
    """Decide about a new object under these policies; raises DecodeError."""
    request = simulation.request_for(obj, namespace=policies.namespace)
    return chain.admit(request, policies, phase=Phase.BOTH, now=int(time.time()))


def tried(manifest: Mapping[str, Any], before: PolicySet | None, text: str) -> dict[str, Any]:
    """Decide about a pasted object with the draft and without it, as a template's context."""
    if before is None:
        return {}
    try:
        pasted_documents = parse_documents(text, "pod")
    except ManifestError as error:
        return {"try_error": str(error)}
    if len(pasted_documents) != 1 or not isinstance(pasted_documents[0].value, dict):
        return {"try_error": "paste one object, such as a pod"}
    pasted_object = pasted_documents[0].value
    try:
        after = simulation.with_unsaved(before, [manifest])
        return {
            "verdict": judge(after, pasted_object),
            "verdict_now": judge(before, pasted_object),
            "keep_text": keep_text(after, pasted_object),
        }
    except DecodeError as error:
        return {"try_error": str(error)}


def keep_text(policies: PolicySet, obj: Mapping[str, Any]) -> str:
    """A test of an object and of what policies answer, as YAML; empty where none can be kept."""
    try:
        return render_manifests([simulation.kept_answer(policies, obj)])
    except DecodeError:
        return ""
