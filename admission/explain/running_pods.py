"""The running pods of a namespace, reconstructed from the ledger and the record.

The ledger says which pods are there (as the cluster's own list confirmed them), the record what
they look like. Pods that no quota counts are known from the record alone.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from admission.models import AuditEvent
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
"""So many pods of a namespace are asked for anew, those of the ledger first."""
CHARGES: Final = 5_000
EVENTS: Final = 1_500
"""So many decisions are read, the newest first; older ones of pods that run are found by name."""
_COLUMNS: Final = (
    "created", "phase", "operation", "name", "object_uid", "verdict", "charges", "request"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedPod:
    """A pod with its owner and the decision that let it in; ``is_counted``: the ledger has it."""

    pod: RunningPod
    decision: str
    owner: dict[str, Any]
    is_counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPods:
    """What is known of a namespace's pods: ``seen`` is when its cluster last listed all pods."""

    pods: tuple[AdmittedPod, ...] = ()
    unknown: tuple[str, ...] = ()
    is_cut: bool = False
    seen: dt.datetime | None = None

    @property
    def counted(self) -> int:
        """How many of them the ledger has, those that nothing more is known of included."""
        return sum(each.is_counted for each in self.pods) + len(self.unknown)

    @property
    def recorded(self) -> int:
        """How many of them the record alone knows of."""
        return sum(not each.is_counted for each in self.pods)


@dataclass(slots=True)
class _Charged:
    """A pod as the ledger has it."""

    uid: str
    name: str
    held: dict[str, ResourceList] = field(default_factory=dict)


def running_in(cluster: Cluster, namespace: str) -> RunningPods:
    """Find the pods that run there; six queries at most."""
    charged, is_cut = _charged(cluster, namespace)
    record = _Record(_decisions(cluster, namespace).newest(EVENTS))
    missing = [each.name for each in charged if each.name and record.of(each) is None]
    if missing:
        older = _decisions(cluster, namespace).filter(name__in=missing, operation="CREATE")
        record.take(older.newest(2 * len(missing)))
    by_uid = {each.uid: record.pod(each) for each in charged}
    found = [pod for pod in by_uid.values() if pod]
    alone, not_whole = _uncharged(cluster, record, charged)
    pods = (*found, *alone)
    return RunningPods(
        pods=pods[:MOST],
        unknown=(
            *[each.name or each.uid for each in charged if by_uid[each.uid] is None],
            *not_whole,
        ),
        is_cut=is_cut or len(pods) > MOST,
        seen=LedgerPass.objects.filter(cluster=cluster, resource="pods", trouble="")
        .values_list("finished", flat=True)
        .first(),
    )


def _decisions(cluster: Cluster, namespace: str) -> AuditEventQuerySet:
    """All that was let through of pods there, dry runs apart."""
    return (
        AuditEvent.objects.for_cluster(cluster.name)
        .for_namespace(namespace)
        .filter(kind="Pod", sub_resource="", operation__in=["CREATE", "DELETE"])
        .allowed()
        .charged()
        .only(*_COLUMNS)
    )


def _charged(cluster: Cluster, namespace: str) -> tuple[list[_Charged], bool]:
    """The pods whose charges are open, and whether there are more than are read."""
    quotas = dict(
        ResourceQuota.objects.filter(
            namespace__cluster=cluster, namespace__name=namespace
        ).values_list("uid", "name")
    )
    rows = list(
        Charge.objects.filter(cluster=cluster, quota_uid__in=list(quotas), resource="pods")
        .exclude(state=Charge.State.RELEASED)
        .values_list("object_uid", "object_name", "quota_uid", "amounts")[:CHARGES]
    )
    pods: dict[str, _Charged] = {}
    for uid, name, quota, amounts in rows:
        pod = pods.setdefault(uid, _Charged(uid, name))
        pod.held[quotas[quota]] = parse(amounts)
    return list(pods.values())[:MOST], len(pods) > MOST or len(rows) == CHARGES


def _uncharged(
    cluster: Cluster, record: _Record, charged: list[_Charged]
) -> tuple[list[AdmittedPod], list[str]]:
    """Pods of the record that no quota counts, as far as nothing says that they are gone.

    Also the names of those that are not on record as a whole.
    """
    known = {each.uid for each in charged} | {each.name for each in charged}
    left = [
        event
        for event in record.admitted.values()
        if not {event.object_uid, event.name} & known and not record.is_deleted(event)
    ]
    once_charged = [event.object_uid for event in left if event.charges]
    there = set(
        Charge.objects.filter(cluster=cluster, resource="pods", object_uid__in=once_charged)
        .exclude(state=Charge.State.RELEASED)
        .values_list("object_uid", flat=True)
        if once_charged
        else ()
    )
    alive = [event for event in left if not event.charges or event.object_uid in there]
    found = {event.name: record.found(event, {}, is_counted=False) for event in alive}
    return [pod for pod in found.values() if pod], [name for name in found if not found[name]]


class _Record:
    """Decisions by the pod that they are about; of several the newest counts."""

    def __init__(self, events: Iterable[AuditEvent]) -> None:
        self.admitted: dict[str, AuditEvent] = {}
        self.asked: dict[str, AuditEvent] = {}
        self.uids: dict[str, AuditEvent] = {}
        self.deleted: dict[str, list[AuditEvent]] = defaultdict(list)
        self.take(events)

    def take(self, events: Iterable[AuditEvent]) -> None:
        """Sort in decisions that come newest first, and later than those taken before."""
        for event in events:
            if event.operation == "DELETE":
                self.deleted[event.name].append(event)
            elif event.phase == "mutate":
                for key in (event.object_uid, event.name, _owner(event).get("uid")):
                    if key:
                        self.asked.setdefault(key, event)
            else:
                self.admitted.setdefault(event.name, event)
                self.uids.setdefault(event.object_uid, event)

    def of(self, pod: _Charged) -> AuditEvent | None:
        """The decision that let in a pod of the ledger."""
        return self.uids.get(pod.uid) or self.admitted.get(pod.name) or self.asked.get(pod.name)

    def is_deleted(self, event: AuditEvent) -> bool:
        """Whether the record has its end, too."""
        return any(each.created >= event.created for each in self.deleted[event.name])

    def pod(self, charged: _Charged) -> AdmittedPod | None:
        """A pod of the ledger with what the record knows of it; None for nothing, or a part."""
        event = self.of(charged)
        return self.found(event, charged.held, is_counted=True) if event else None

    def found(
        self, event: AuditEvent, held: dict[str, ResourceList], *, is_counted: bool
    ) -> AdmittedPod | None:
        """The pod of a decision, and how its owner asks for it before anything changes it.

        None where that is not on record as a whole: nobody can judge it again.
        """
        owner = _owner(event)
        keys = (event.object_uid, event.name, owner.get("uid"))
        asked = next((self.asked[key] for key in keys if key and key in self.asked), event)
        if event.is_cut or asked.is_cut:
            return None
        pod = RunningPod(name=event.name, stands=_object(event), asked=_object(asked), held=held)
        return AdmittedPod(pod=pod, decision=event.id, owner=owner, is_counted=is_counted)


def _object(event: AuditEvent) -> dict[str, Any]:
    found = restore(event.request.get("object"))
    return found if isinstance(found, dict) else {}


def _owner(event: AuditEvent) -> dict[str, Any]:
    """The controller that made it; empty for none."""
    judged = event.request.get("object")
    metadata = judged.get("metadata") if isinstance(judged, dict) else None
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller"):
            return owner
    return {}
