"""The pod template of a workload, judged as a pod request: warnings that pods would be refused.

Kubernetes checks only the pods that a controller creates later, and reports refusals as events.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.bounds import shortened
from engine.chain.denial import text_of
from engine.chain.findings import NOTHING_FOUND, Findings
from engine.chain.mutation import complete_object, default_object, mutate
from engine.chain.validation import Inspection, inspect
from engine.decision import Outcome, Step
from engine.errors import DecodeError
from engine.policy import Authority
from engine.request import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.policy import PolicySet
    from engine.resource_quota import UsedAmounts

_TEMPLATE_PATHS: Final = {
    "deployments.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "replicasets.apps": ("spec", "template"),
    "replicationcontrollers": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
    "podtemplates": ("template",),
}
_STEP: Final = "PodTemplate"
_LONGEST_DETAIL: Final = 2048  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateCheck:
    """Findings about a workload's pods that need no used amounts.

    ``kind`` is the workload's, None where the object is no workload. ``problem`` is why the pods
    cannot be read; otherwise ``inspection`` has the findings about one of them.
    """

    kind: str | None = None
    problem: tuple[str, ...] = ()
    inspection: Inspection | None = None

    @property
    def quotas(self) -> tuple[str, ...]:
        """Names of the quotas whose used amounts decide what happens to the pods."""
        demands = self.inspection.quotas.open_demands if self.inspection else ()
        return tuple([demand.match.quota.name for demand in demands])

    def conclude(self, used: UsedAmounts) -> Findings:
        """Word what would happen to the pods: warnings, never violations."""
        if self.kind is None:
            return NOTHING_FOUND
        texts = self.problem
        if self.inspection:
            before, after = self.inspection.findings, self.inspection.conclude(used).findings
            violations = (*before.violations, *after.violations)
            texts = tuple([text_of(violation) for violation in violations])
        outcome = Outcome.VIOLATED if texts else Outcome.PASSED
        step = Step(
            name=_STEP, outcome=outcome, detail=shortened("; ".join(texts), _LONGEST_DETAIL)
        )
        warnings = tuple([f"pods of this {self.kind} would be refused: {text}" for text in texts])
        return Findings(warnings=warnings, steps=(step,))


_NO_TEMPLATE: Final = TemplateCheck()


def check_template(
    request: AdmissionRequest, policy_set: PolicySet, now: str | int | None = None
) -> TemplateCheck:
    """Judge one pod of a workload by ranges and quotas."""
    path = template_path(request)
    if path is None:
        return _NO_TEMPLATE
    template: Any = request.object
    for name in path:
        template = template.get(name) if isinstance(template, dict) else None
    if not isinstance(template, dict):
        return _NO_TEMPLATE
    pod = pod_request(request, template)
    # Whichever side enforces, the pods will meet these ranges and quotas.
    resources_only = dataclasses.replace(
        policy_set, metadata_policies=(), authority=Authority.PORTAL
    )
    kind = request.kind.kind
    try:
        return TemplateCheck(kind=kind, inspection=_inspect(pod, resources_only, now))
    except DecodeError as error:
        return TemplateCheck(kind=kind, problem=(error.detail,))


def template_path(request: AdmissionRequest) -> tuple[str, ...] | None:
    """Where a written workload keeps the template of its pods; None for other requests."""
    is_written = request.operation in (Operation.CREATE, Operation.UPDATE)
    if request.sub_resource or not is_written:
        return None
    return _TEMPLATE_PATHS.get(str(request.resource))


def pod_request(request: AdmissionRequest, template: Mapping[str, Any]) -> AdmissionRequest:
    """Make the dry run of creating one pod of a workload."""
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
        pause=request.pause,
    )


def _inspect(request: AdmissionRequest, policy_set: PolicySet, now: str | int | None) -> Inspection:
    # The same sequence as for a real pod: decode, mutate, validate.
    version = policy_set.version
    obj = default_object(request, request.object or {}, version)
    mutation = mutate(request.with_object(obj), policy_set, obj)
    completed = complete_object(request, mutation.object, version)
    return inspect(request.with_object(completed), policy_set, now)
