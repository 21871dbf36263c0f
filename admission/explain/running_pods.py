"""RunningPods of a namespace: pods of open Charges, matched with the decisions that admitted them.

The ledger has the pods that the cluster's own list confirmed, the record their manifests. Pods that
no quota counts are known from the record alone.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from admission.models import AuditEvent
from admission.models.document import IN_DOCUMENT
from admission.record.redaction import restore
from engine.resource_list import parse
from policies.models import Charge, LedgerPass, ResourceQuota
from policies.simulation import RunningPod

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from admission.models import AuditEventQuerySet
    from engine.resource_list import ResourceList
    from policies.models import Cluster

MOST: Final = 500
"""Pods of a namespace that are reconstructed, those of the ledger first."""
CHARGES: Final = 5_000
EVENTS: Final = 1_500
"""Decisions that are read, the newest first; older ones of running pods are found by name."""
_COLUMNS: Final = (
    "created", "phase", "operation", "name", "object_uid", "verdict", *IN_DOCUMENT
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedPod:
    """A pod with its owner and the decision that admitted it; ``is_counted``: the ledger has it."""

    pod: RunningPod
    decision: str
    owner: dict[str, Any]
    is_counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPods:
    """The known pods of a namespace; ``seen`` is when its cluster last listed all pods."""

    pods: tuple[AdmittedPod, ...] = ()
    unknown: tuple[str, ...] = ()
    is_cut: bool = False
    seen: dt.datetime | None = None

    @property
    def counted(self) -> int:
        """The number of pods in the ledger, with those that have no record."""
        return sum(pod.is_counted for pod in self.pods) + len(self.unknown)

    @property
    def recorded(self) -> int:
        """The number of pods that only the record has."""
        return sum(not pod.is_counted for pod in self.pods)


@dataclass(slots=True)
class _ChargedPod:
    """A pod as the ledger has it."""

    uid: str
    name: str
    held: dict[str, ResourceList] = field(default_factory=dict)


def running_in(cluster: Cluster, namespace: str) -> RunningPods:
    """Find the running pods; six queries at most."""
    charged_pods, is_cut = _charged(cluster, namespace)
    record = _RecordedPods(_decisions(cluster, namespace).newest(EVENTS))
    # The newest decisions cover most pods; older ones are looked up by the index on names.
    unrecorded = [pod.name for pod in charged_pods if pod.name and record.of(pod) is None]
    if unrecorded:
        older = _decisions(cluster, namespace).filter(name__in=unrecorded, operation="CREATE")
        record.add(older.newest(2 * len(unrecorded)))
    pod_by_uid = {charged_pod.uid: record.pod(charged_pod) for charged_pod in charged_pods}
    counted_pods = [pod for pod in pod_by_uid.values() if pod]
    uncharged_pods, cut_pods = _uncharged_pods(cluster, record, charged_pods)
    pods = (*counted_pods, *uncharged_pods)
    return RunningPods(
        pods=pods[:MOST],
        unknown=(
            *[pod.name or pod.uid for pod in charged_pods if pod_by_uid[pod.uid] is None],
            *cut_pods,
        ),
        is_cut=is_cut or len(pods) > MOST,
        seen=LedgerPass.objects.filter(cluster=cluster, resource="pods", problem="")
        .values_list("finished", flat=True)
        .first(),
    )


def _decisions(cluster: Cluster, namespace: str) -> AuditEventQuerySet:
    """Allowed requests for pods there, without dry runs."""
    return (
        AuditEvent.objects.for_cluster(cluster.name)
        .for_namespace(namespace)
        .filter(kind="Pod", sub_resource="", operation__in=["CREATE", "DELETE"])
        .allowed()
        .charged()
        .only(*_COLUMNS)
    )


def _charged(cluster: Cluster, namespace: str) -> tuple[list[_ChargedPod], bool]:
    """The pods whose charges are open, and whether the list is cut."""
    quota_names = dict(
        ResourceQuota.objects.filter(
            namespace__cluster=cluster, namespace__name=namespace
        ).values_list("uid", "name")
    )
    charges = list(
        Charge.objects.filter(cluster=cluster, quota_uid__in=list(quota_names), resource="pods")
        .exclude(state=Charge.State.RELEASED)
        .values_list("object_uid", "object_name", "quota_uid", "amounts")[:CHARGES]
    )
    pods: dict[str, _ChargedPod] = {}
    for uid, name, quota, amounts in charges:
        charged_pod = pods.setdefault(uid, _ChargedPod(uid, name))
        charged_pod.held[quota_names[quota]] = parse(amounts)
    return list(pods.values())[:MOST], len(pods) > MOST or len(charges) == CHARGES


def _uncharged_pods(
    cluster: Cluster, record: _RecordedPods, charged_pods: list[_ChargedPod]
) -> tuple[list[AdmittedPod], list[str]]:
    """Pods of the record that no quota counts and whose end is not known.

    Also the names of those whose record was cut.
    """
    charged = {pod.uid for pod in charged_pods} | {pod.name for pod in charged_pods}
    left = [
        event
        for event in record.admitted.values()
        if not {event.object_uid, event.name} & charged and not record.is_deleted(event)
    ]
    once_charged = [event.object_uid for event in left if event.charges]
    still_charged = set(
        Charge.objects.filter(cluster=cluster, resource="pods", object_uid__in=once_charged)
        .exclude(state=Charge.State.RELEASED)
        .values_list("object_uid", flat=True)
        if once_charged
        else ()
    )
    running = [event for event in left if not event.charges or event.object_uid in still_charged]
    pods = {event.name: record.found(event, {}, is_counted=False) for event in running}
    return [pod for pod in pods.values() if pod], [name for name in pods if not pods[name]]


class _RecordedPods:
    """Decisions by their pod; of several the newest counts."""

    def __init__(self, events: Iterable[AuditEvent]) -> None:
        self.admitted: dict[str, AuditEvent] = {}
        self.requested: dict[str, AuditEvent] = {}
        self.uids: dict[str, AuditEvent] = {}
        self.deleted: dict[str, list[AuditEvent]] = defaultdict(list)
        self.add(events)

    def add(self, events: Iterable[AuditEvent]) -> None:
        """Index decisions: the newest first, and all older than those before."""
        for event in events:
            if event.operation == "DELETE":
                self.deleted[event.name].append(event)
            elif event.phase == "mutate":
                for pod_key in (event.object_uid, event.name, _controller(event).get("uid")):
                    if pod_key:
                        self.requested.setdefault(pod_key, event)
            else:
                self.admitted.setdefault(event.name, event)
                self.uids.setdefault(event.object_uid, event)

    def of(self, pod: _ChargedPod) -> AuditEvent | None:
        """The decision that admitted a pod of the ledger."""
        return self.uids.get(pod.uid) or self.admitted.get(pod.name) or self.requested.get(pod.name)

    def is_deleted(self, event: AuditEvent) -> bool:
        """Whether the record has its deletion, too."""
        return any(deletion.created >= event.created for deletion in self.deleted[event.name])

    def pod(self, charged_pod: _ChargedPod) -> AdmittedPod | None:
        """A pod of the ledger with its record; None where that is missing or cut."""
        event = self.of(charged_pod)
        return self.found(event, charged_pod.held, is_counted=True) if event else None

    def found(
        self, event: AuditEvent, held: dict[str, ResourceList], *, is_counted: bool
    ) -> AdmittedPod | None:
        """The pod of a decision, as admitted and as its owner requests it, before any mutation.

        None where one of these was cut: it cannot be decided again.
        """
        controller = _controller(event)
        pod_keys = (event.object_uid, event.name, controller.get("uid"))
        requested = next(
            (self.requested[key] for key in pod_keys if key and key in self.requested), event
        )
        if event.is_cut or requested.is_cut:
            return None
        pod = RunningPod(
            name=event.name, stands=_recorded(event), asked=_recorded(requested), held=held
        )
        return AdmittedPod(pod=pod, decision=event.id, owner=controller, is_counted=is_counted)


def _recorded(event: AuditEvent) -> dict[str, Any]:
    recorded_object = restore(event.request.get("object"))
    return recorded_object if isinstance(recorded_object, dict) else {}


def _controller(event: AuditEvent) -> dict[str, Any]:
    """The controller that made it; empty for none."""
    pod_object = event.request.get("object")
    metadata = pod_object.get("metadata") if isinstance(pod_object, dict) else None
    owner_references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for reference in owner_references if isinstance(owner_references, list) else ():
        if isinstance(reference, dict) and reference.get("controller"):
            return reference
    return {}
