"""Set the QoS annotation of every pod, whatever its author wrote there.

Source: the seed's QoS controller with the resolutions of the semantics reference, section 4.5.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.decision import Outcome, Step
from engine.metadata_policy.definition import QOS_ANNOTATION
from engine.metadata_policy.updates import set_metadata
from engine.pod import qos_class
from engine.request import AdmissionRequest, Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.patch import PatchOperation
    from engine.pod import PodSpec

_NAME = "QOSAnnotation"


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
        return QOSResult(object=obj, step=Step(name=_NAME, outcome=Outcome.SKIPPED, detail=why))
    update = request.operation is Operation.UPDATE and request.old_object is not None
    qos = str(qos_class(request.old_object if update and request.old_object else defaulted))
    changed, operations = set_metadata(obj, {"annotations": {QOS_ANNOTATION: qos}})
    step = _step(Outcome.CHANGED if operations else Outcome.UNCHANGED, qos)
    return QOSResult(object=changed, qos=qos, operations=operations, step=step)


@cache
def _step(outcome: Outcome, qos: str) -> Step:
    return Step(name=_NAME, outcome=outcome, detail=f"{QOS_ANNOTATION}={qos}")


def _reason_skipped(request: AdmissionRequest) -> str:
    if str(request.resource) != "pods" or request.sub_resource:
        return "only pods carry a QoS class"
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return f"{request.operation} sets no annotation"
    return "the pod is being deleted" if request.is_being_deleted else ""
