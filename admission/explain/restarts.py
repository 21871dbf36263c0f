"""Restarts of running pods: those that other policies would refuse, by owner and reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from admission.record import owners
from policies.simulation import refused_restarts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from admission.explain.running_pods import AdmittedPod, RunningPods
    from engine.decision import Violation
    from engine.policy import PolicySet

PODS_SHOWN: Final = 5


@dataclass(slots=True, kw_only=True)
class RestartRow:
    """Pods of one owner that would be refused for the same reasons."""

    kind: str
    owner: str
    refusals: tuple[Violation, ...]
    is_so_today: bool
    pods: list[AdmittedPod] = field(default_factory=list)

    @property
    def shown(self) -> Sequence[AdmittedPod]:
        """The first of them, to be named."""
        return self.pods[:PODS_SHOWN]

    @property
    def others(self) -> int:
        """How many more there are."""
        return len(self.pods) - len(self.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """The running pods of a namespace, and those that would be refused if recreated."""

    running: RunningPods
    rows: Sequence[RestartRow]

    @property
    def refused(self) -> int:
        """How many would be refused."""
        return sum(len(row.pods) for row in self.rows)

    @property
    def newly(self) -> int:
        """How many of these are refused only by the draft."""
        return sum(len(row.pods) for row in self.rows if not row.is_so_today)

    @property
    def passing(self) -> int:
        """How many would be admitted."""
        return len(self.running.pods) - self.refused


def restarts_of(running: RunningPods, *, before: PolicySet, after: PolicySet) -> Restarts:
    """Evaluate each running pod as if recreated; raises DecodeError."""
    # By identity: pods of equal values are different pods.
    pods_by_id = {id(each.pod): each for each in running.pods}
    refused_pods = refused_restarts([each.pod for each in running.pods], before=before, after=after)
    by_reason: dict[tuple[object, ...], RestartRow] = {}
    for each in refused_pods:
        running_pod = pods_by_id[id(each.pod)]
        # A Deployment and not its ReplicaSet, as everywhere.
        owner = owners.of_reference(running_pod.owner, running_pod.pod.stands.get("metadata") or {})
        reasons = tuple(violation.message for violation in each.refusals)
        row_key = (owner.kind, owner.name or running_pod.pod.name, reasons, each.is_so_today)
        row = RestartRow(
            kind=owner.kind,
            owner=owner.name,
            refusals=each.refusals,
            is_so_today=each.is_so_today,
        )
        by_reason.setdefault(row_key, row).pods.append(running_pod)
    order = sorted(by_reason.values(), key=lambda row: (row.is_so_today, -len(row.pods), row.owner))
    return Restarts(running=running, rows=order)
