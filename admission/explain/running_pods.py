"""The running pods of a namespace, reconstructed from the ledger and the record.

The ledger has the pods that the cluster's own list confirmed, the record their manifests. Pods that
no quota counts are known from the record alone.
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
"""Pods of a namespace that are reconstructed, those of the ledger first."""
CHARGES: Final = 5_000
EVENTS: Final = 1_500
"""Decisions that are read, the newest first; older ones of running pods are found by name."""
_COLUMNS: Final = (
    "created", "phase", "operation", "name", "object_uid", "verdict", "charges", "request"
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
        return sum(each.is_counted for each in self.pods) + len(self.unknown)

    @property
    def recorded(self) -> int:
        """The number of pods that only the record has."""
        return sum(not each.is_counted for each in self.pods)


@dataclass(slots=True)
class _Charged:
    """A pod as the ledger has it."""

    uid: str
    name: str
    held: dict[str, ResourceList] = field(default_factory=dict)


def running_in(cluster: Cluster, namespace: str) -> RunningPods:
    """Find the running pods; six queries at most."""
    charged, is_cut = _charged(cluster, namespace)
    record = _Record(_decisions(cluster, namespace).newest(EVENTS))
    # The newest decisions cover most pods; older ones are looked up by the index on names.
    missing = [each.name for each in charged if each.name and record.of(each) is None]
    if missing:
        older = _decisions(cluster, namespace).filter(name__in=missing, operation="CREATE")
        record.add(older.newest(2 * len(missing)))
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


def _charged(cluster: Cluster, namespace: str) -> tuple[list[_Charged], bool]:
    """The pods whose charges are open, and whether the list is cut."""
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
    """Pods of the record that no quota counts and whose end is not known.

    Also the names of those whose record was cut.
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
                for key in (event.object_uid, event.name, _owner(event).get("uid")):
                    if key:
                        self.requested.setdefault(key, event)
            else:
                self.admitted.setdefault(event.name, event)
                self.uids.setdefault(event.object_uid, event)

    def of(self, pod: _Charged) -> AuditEvent | None:
        """The decision that admitted a pod of the ledger."""
        return self.uids.get(pod.uid) or self.admitted.get(pod.name) or self.requested.get(pod.name)

    def is_deleted(self, event: AuditEvent) -> bool:
        """Whether the record has its deletion, too."""
        return any(each.created >= event.created for each in self.deleted[event.name])

    def pod(self, charged: _Charged) -> AdmittedPod | None:
        """A pod of the ledger with its record; None where that is missing or cut."""
        event = self.of(charged)
        return self.found(event, charged.held, is_counted=True) if event else None

    def found(
        self, event: AuditEvent, held: dict[str, ResourceList], *, is_counted: bool
    ) -> AdmittedPod | None:
        """The pod of a decision, as admitted and as its owner requests it, before any mutation.

        None where one of these was cut: it cannot be decided again.
        """
        owner = _owner(event)
        keys = (event.object_uid, event.name, owner.get("uid"))
        requested = next(
            (self.requested[key] for key in keys if key and key in self.requested), event
        )
        if event.is_cut or requested.is_cut:
            return None
        pod = RunningPod(
            name=event.name, stands=_object(event), asked=_object(requested), held=held
        )
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
