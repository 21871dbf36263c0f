"""Set labels and annotations in metadata: merged updates, their patch, overrides; QoS annotation.

Source: RFC 6902 (patch) and RFC 6901 (pointers); conflicts and QoS as in the
semantics reference, sections 4.2 and 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.decision import Outcome, Step
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.metadata_policy.definition import QOS_ANNOTATION
from engine.patch import PatchOperation, pointer
from engine.pod import qos_class
from engine.request import AdmissionRequest, Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.pod import PodSpec
    from engine.policy import PolicyAction

_QOS_STEP: Final = "QOSAnnotation"
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Update:
    """The updates of one rule, and the name of the rule in warnings."""

    rule: str
    action: PolicyAction


def collect_updates(
    updates: list[Update],
) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Merge labels and annotations in order, with a warning for each key with two values."""
    labels, label_warnings = _merge("label", [(u.rule, u.action.updated_labels) for u in updates])
    annotations, annotation_warnings = _merge(
        "annotation", [(u.rule, u.action.updated_annotations) for u in updates]
    )
    return labels, annotations, (*label_warnings, *annotation_warnings)


def _merge(
    what: str, updates: list[tuple[str, Mapping[str, str]]]
) -> tuple[dict[str, str], list[str]]:
    merged: dict[str, str] = {}
    origins: dict[str, str] = {}
    warnings: list[str] = []
    for rule, rule_updates in updates:
        for key, value in rule_updates.items():
            if merged.get(key, value) != value:
                warnings.append(
                    f"{rule} overrides {origins[key].removeprefix('MetadataPolicy ')}: {what} {key}"
                )
            merged[key], origins[key] = value, rule
    return merged, warnings


def set_metadata(
    obj: Mapping[str, Any], wanted: Mapping[str, Mapping[str, str]]
) -> tuple[Mapping[str, Any], tuple[PatchOperation, ...]]:
    """Set keys of ``metadata.labels`` and ``metadata.annotations`` on a copy of what changes.

    Keys that have their value already are skipped; without changes the object itself is returned.
    Maps that are missing or null are added by operations of their own.
    """
    metadata: Mapping[str, Any] = obj.get("metadata") or _NOTHING
    changed_maps: dict[str, dict[str, str]] = {}
    operations: list[PatchOperation] = []
    for field, wanted_keys in wanted.items():
        present: Mapping[str, str] = metadata.get(field) or _NOTHING
        changes = [pair for pair in wanted_keys.items() if present.get(pair[0]) != pair[1]]
        if not changes:
            continue
        if metadata.get(field) is None:
            operations.append(PatchOperation("add", f"/metadata/{field}", {}))
        changes.sort()  # equal objects get equal patches
        changed_maps[field] = {**present, **dict(changes)}
        operations += [_addition(field, key, value) for key, value in changes]
    if not changed_maps:
        return obj, ()
    if obj.get("metadata") is None:
        operations.insert(0, PatchOperation("add", "/metadata", {}))
    return {**obj, "metadata": {**metadata, **changed_maps}}, tuple(operations)


@lru_cache(maxsize=1024)
def _addition(field: str, key: str, value: str) -> PatchOperation:
    """Build one operation; policies set the same few keys and values over and over."""
    return PatchOperation("add", pointer(("metadata", field, key)), value)


class QOSResult(NamedTuple):
    """The annotated pod and its class; ``qos`` is empty where the request gets no annotation."""

    object: Mapping[str, Any]
    step: Step
    qos: str = ""
    operations: tuple[PatchOperation, ...] = ()


def annotate_qos(
    request: AdmissionRequest,
    obj: Mapping[str, Any],
    defaulted: Mapping[str, Any] | PodSpec,
    version: KubernetesVersion = DEFAULT_VERSION,
) -> QOSResult:
    """Set the QoS annotation on a pod that is created or updated, whatever its author wrote there.

    ``defaulted`` is the pod, or its spec, as the API server will store it: the class of a
    new pod follows its spec after LimitRange defaults. An existing pod keeps the class with which
    it was created, that of the old object.
    """
    if why := _reason_no_qos(request):
        return QOSResult(object=obj, step=Step(name=_QOS_STEP, outcome=Outcome.SKIPPED, detail=why))
    is_update = request.operation is Operation.UPDATE and request.old_object is not None
    # A resize must not change the class, so that the old object is right even if the spec differs.
    classified = request.old_object if is_update and request.old_object else defaulted
    qos = str(qos_class(classified, version))
    annotated, operations = set_metadata(obj, {"annotations": {QOS_ANNOTATION: qos}})
    step = _qos_step(Outcome.CHANGED if operations else Outcome.UNCHANGED, qos)
    return QOSResult(object=annotated, qos=qos, operations=operations, step=step)


@cache
def _qos_step(outcome: Outcome, qos: str) -> Step:
    return Step(name=_QOS_STEP, outcome=outcome, detail=f"{QOS_ANNOTATION}={qos}")


def _reason_no_qos(request: AdmissionRequest) -> str:
    if str(request.resource) != "pods" or request.sub_resource:
        return "only pods carry a QoS class"
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return f"{request.operation} sets no annotation"
    return "the pod is being deleted" if request.is_being_deleted else ""
