"""The mutating pass: decoding, LimitRange defaults, QoS annotation, then metadata policies.

Order and scope as in the semantics reference, section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from engine import metadata_policy
from engine.chain.findings import NOTHING_FOUND, Findings, skipped
from engine.limit_range import default_pod_resources
from engine.patch import PatchBuilder
from engine.pod import complete_pod, default_claim, default_pod, read_settled
from engine.policy import Authority
from engine.request import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.decision import Step
    from engine.kubernetes_version import KubernetesVersion
    from engine.patch import PatchOperation
    from engine.pod import PodSpec
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest


class Mutation(NamedTuple):
    """The object after the mutating pass, the patch that leads there, and the findings."""

    object: Mapping[str, Any]
    operations: tuple[PatchOperation, ...] = ()
    findings: Findings = NOTHING_FOUND


def default_object(
    request: AdmissionRequest,
    obj: Mapping[str, Any],
    version: KubernetesVersion,
    record: Callable[[tuple[str | int, ...], Any], None] | None = None,
) -> Mapping[str, Any]:
    """Default an object as decoding it does; raises ``DecodeError``.

    ``record`` receives each change of meaning, for a patch.
    """
    if request.pause is not None:
        request.pause()
    if request.is_pod:
        return default_pod(obj, record, version)
    return default_claim(obj, record) if request.is_claim else obj


def complete_object(
    request: AdmissionRequest, obj: Mapping[str, Any], version: KubernetesVersion
) -> Mapping[str, Any]:
    """Complete an object as the API server does between both passes; raises ``DecodeError``."""
    return complete_pod(obj, version) if defaults_pods(request) else obj


def stored_object(
    request: AdmissionRequest, obj: Mapping[str, Any], version: KubernetesVersion
) -> Mapping[str, Any]:
    """Default and complete an object that a webhook has changed; raises ``DecodeError``."""
    return complete_object(request, default_object(request, obj, version), version)


def mutate(request: AdmissionRequest, policy_set: PolicySet, obj: Mapping[str, Any]) -> Mutation:
    """Run the pass on ``obj``; rejects of metadata policies are its only violations.

    An API server sends defaulted objects. Any other is defaulted first, as part of the patch, which
    would not fit the object otherwise; nor would limits become requests.
    """
    # Predicates see the metadata as received, so that no rule depends on what another one set.
    received = metadata_policy.PodMetadata.of(obj)
    spec = _read_settled(request, obj)
    decoded: list[PatchOperation] = []
    if spec is None:
        decoding = PatchBuilder(obj)
        obj = default_object(request, obj, policy_set.version, decoding.record)
        decoded = decoding.operations
    defaulted, operations, default_steps = _default_resources(request, policy_set, obj, spec)
    if defaulted is not obj:
        spec = _read_settled(request, defaulted)
    as_stored = spec or stored_object(request, defaulted, policy_set.version)
    qos = metadata_policy.annotate_qos(request, defaulted, as_stored, policy_set.version)
    ruled = _apply_metadata(request, policy_set, received.with_qos(qos.qos), qos.object)
    all_operations = (*decoded, *operations, *qos.operations, *ruled.operations)
    findings = Findings(
        violations=ruled.violations,
        observed=ruled.observed,
        warnings=ruled.warnings,
        steps=(*default_steps, qos.step, *ruled.steps),
    )
    return Mutation(
        object=ruled.object,
        # A refused object gets no patch, which an API server would ignore.
        operations=() if ruled.violations else all_operations,
        findings=findings,
    )


def _read_settled(request: AdmissionRequest, obj: Mapping[str, Any]) -> PodSpec | None:
    """Read a pod that needs no defaulting; None for all other objects."""
    return read_settled(obj) if request.is_pod else None


def _default_resources(
    request: AdmissionRequest,
    policy_set: PolicySet,
    obj: Mapping[str, Any],
    spec: PodSpec | None,
) -> tuple[Mapping[str, Any], Sequence[PatchOperation], Sequence[Step]]:
    ranges = policy_set.limit_ranges
    if why := _reason_not_defaulted(request, policy_set):
        return obj, (), skipped("LimitRangeDefaults", why).steps
    # The API server drops changes of metadata from a resize, so that an annotation would be lost.
    annotate = not request.is_resize
    return default_pod_resources(obj, ranges, annotate=annotate, spec=spec, pause=request.pause)


def _reason_not_defaulted(request: AdmissionRequest, policy_set: PolicySet) -> str:
    if not defaults_pods(request):
        return "only pods that are created or resized get default resources"
    if request.is_being_deleted:
        return "the object is being deleted"
    if not policy_set.limit_ranges:
        return "the namespace has no LimitRange"
    if policy_set.authority is Authority.NATIVE:
        # LimitRanger set its defaults before any webhook was called. Defaults of another revision
        # that this portal added would be judged by LimitRanger afterwards.
        return "the API server's LimitRanger has set them"
    return ""


def defaults_pods(request: AdmissionRequest) -> bool:
    """Whether LimitRanges set default resources: when a pod is created or resized."""
    if request.is_resize:
        return request.operation is Operation.UPDATE
    return request.is_new_pod


def _apply_metadata(
    request: AdmissionRequest,
    policy_set: PolicySet,
    snapshot: metadata_policy.PodMetadata,
    obj: Mapping[str, Any],
) -> metadata_policy.MetadataResult:
    why = metadata_policy.reason_not_applicable(request)
    if not why and not policy_set.metadata_policies:
        why = "the namespace has no MetadataPolicy"
    if why:
        return metadata_policy.MetadataResult(
            object=obj, steps=skipped("MetadataPolicy", why).steps
        )
    return metadata_policy.apply(request, policy_set.metadata_policies, snapshot, obj)
