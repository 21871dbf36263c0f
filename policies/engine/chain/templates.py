"""Pod templates: what would happen to the pods of a workload, said as a warning.

Kubernetes checks only the pods that a controller makes later, and says so in events nobody reads.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from policies.engine.chain.denial import text_of
from policies.engine.chain.findings import Findings
from policies.engine.chain.mutation import default_object, mutate
from policies.engine.chain.subjects import TEMPLATE_PATHS, restate
from policies.engine.chain.validation import validate
from policies.engine.decision import Outcome, Step
from policies.engine.errors import DecodeError
from policies.engine.request import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.engine.policy import PolicySet

_NAME = "PodTemplate"


def check_template(
    request: AdmissionRequest, policy_set: PolicySet, now: str | int | None = None
) -> Findings:
    """Judge one pod of a workload by ranges and quotas; nothing is ever refused for it."""
    template = _template_of(request)
    if template is None:
        return Findings()
    pod_request = _pod_request(request, template)
    resources_only = dataclasses.replace(policy_set, metadata_policies=())
    try:
        texts = _judge(pod_request, resources_only, now)
    except DecodeError as error:
        texts = [error.detail]
    outcome = Outcome.VIOLATED if texts else Outcome.PASSED
    step = Step(name=_NAME, outcome=outcome, detail="; ".join(texts))
    kind = request.kind.kind
    warnings = tuple(f"pods of this {kind} would be refused: {text}" for text in texts)
    return Findings(warnings=warnings, steps=(step,))


def _template_of(request: AdmissionRequest) -> Mapping[str, Any] | None:
    path = TEMPLATE_PATHS.get(str(request.resource))
    written = request.operation in (Operation.CREATE, Operation.UPDATE)
    if path is None or request.sub_resource or not written:
        return None
    found: Any = request.object
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _pod_request(request: AdmissionRequest, template: Mapping[str, Any]) -> AdmissionRequest:
    metadata = template.get("metadata")
    named = {"generateName": f"{request.display_name}-", "namespace": request.namespace}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**(metadata if isinstance(metadata, dict) else {}), **named},
        "spec": template.get("spec"),
    }
    return AdmissionRequest(
        kind=GroupVersionKind(kind="Pod"),
        resource=GroupVersionResource(resource="pods"),
        namespace=request.namespace,
        operation=Operation.CREATE,
        user=request.user,
        object=pod,
        dry_run=True,
    )


def _judge(request: AdmissionRequest, policy_set: PolicySet, now: str | int | None) -> list[str]:
    obj = default_object(request, request.object or {})
    mutation = mutate(restate(request, obj), policy_set, obj)
    stored = default_object(request, mutation.object)
    found = validate(restate(request, stored), policy_set, now).findings
    return [text_of(violation) for violation in found.violations]
