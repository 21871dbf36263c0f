"""Set labels and annotations: resolve conflicting updates, and write the patch.

Source: RFC 6902 (patch) and RFC 6901 (pointers); conflicts as in the semantics reference, 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.decision import Outcome, Step
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
    """What one rule asks to be set, and how a warning names that rule."""

    rule: str
    action: PolicyAction


def collect_updates(
    updates: list[Update],
) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Merge in order: labels, annotations, and a warning for each key set to two values."""
    labels, label_warnings = _merge("label", [(u.rule, u.action.updated_labels) for u in updates])
    annotations, annotation_warnings = _merge(
        "annotation", [(u.rule, u.action.updated_annotations) for u in updates]
    )
    return labels, annotations, (*label_warnings, *annotation_warnings)


def _merge(
    what: str, asked: list[tuple[str, Mapping[str, str]]]
) -> tuple[dict[str, str], list[str]]:
    values: dict[str, str] = {}
    owners: dict[str, str] = {}
    warnings: list[str] = []
    for rule, wanted in asked:
        for key, value in wanted.items():
            if values.get(key, value) != value:
                warnings.append(
                    f"{rule} overrides {owners[key].removeprefix('MetadataPolicy ')}: {what} {key}"
                )
            values[key], owners[key] = value, rule
    return values, warnings


def set_metadata(
    obj: Mapping[str, Any], wanted: Mapping[str, Mapping[str, str]]
) -> tuple[Mapping[str, Any], tuple[PatchOperation, ...]]:
    """Set keys of ``metadata.labels`` and ``metadata.annotations`` on a copy of what changes.

    What holds already is left alone; the object itself comes back where nothing changes. Maps that
    are missing or null are added first, each by its own operation.
    """
    metadata: Mapping[str, Any] = obj.get("metadata") or _NOTHING
    fresh: dict[str, dict[str, str]] = {}
    operations: list[PatchOperation] = []
    for field, values in wanted.items():
        present: Mapping[str, str] = metadata.get(field) or _NOTHING
        changes = [entry for entry in values.items() if present.get(entry[0]) != entry[1]]
        if not changes:
            continue
        if metadata.get(field) is None:
            operations.append(PatchOperation("add", f"/metadata/{field}", {}))
        changes.sort()
        fresh[field] = {**present, **dict(changes)}
        operations += [_addition(field, key, value) for key, value in changes]
    if not fresh:
        return obj, ()
    if obj.get("metadata") is None:
        operations.insert(0, PatchOperation("add", "/metadata", {}))
    return {**obj, "metadata": {**metadata, **fresh}}, tuple(operations)


@lru_cache(maxsize=1024)
def _addition(field: str, key: str, value: str) -> PatchOperation:
    """The same few keys and values are set over and over."""
    return PatchOperation("add", pointer(("metadata", field, key)), value)


class QOSResult(NamedTuple):
    """The pod with its class; ``qos`` is empty when the request is none of ours."""

    object: Mapping[str, Any]
    step: Step
    qos: str = ""
    operations: tuple[PatchOperation, ...] = ()


def annotate_qos(
    request: AdmissionRequest, obj: Mapping[str, Any], defaulted: Mapping[str, Any] | PodSpec
) -> QOSResult:
    """Set the annotation on a pod that is created or updated.

    ``defaulted`` is the pod as the API server will default it once more, or what was read of it.

    The class comes from the spec as it stands after LimitRange defaults; a pod that exists
    keeps the class it was created with, so on update the old object says it.
    """
    if why := _reason_skipped(request):
        return QOSResult(object=obj, step=Step(name=_QOS_STEP, outcome=Outcome.SKIPPED, detail=why))
    update = request.operation is Operation.UPDATE and request.old_object is not None
    qos = str(qos_class(request.old_object if update and request.old_object else defaulted))
    changed, operations = set_metadata(obj, {"annotations": {QOS_ANNOTATION: qos}})
    step = _step(Outcome.CHANGED if operations else Outcome.UNCHANGED, qos)
    return QOSResult(object=changed, qos=qos, operations=operations, step=step)


@cache
def _step(outcome: Outcome, qos: str) -> Step:
    return Step(name=_QOS_STEP, outcome=outcome, detail=f"{QOS_ANNOTATION}={qos}")


def _reason_skipped(request: AdmissionRequest) -> str:
    if str(request.resource) != "pods" or request.sub_resource:
        return "only pods carry a QoS class"
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return f"{request.operation} sets no annotation"
    return "the pod is being deleted" if request.is_being_deleted else ""
