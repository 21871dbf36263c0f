"""Impact of a draft: the running pods that it would refuse if it were enforced, by owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from admission.explain.restarts import restarts_of
from admission.explain.running_pods import running_in
from policies import snapshot
from policies.simulation import with_unsaved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from admission.explain.restarts import RestartRow, Restarts
    from engine.decision import Violation
    from engine.policy import PolicySet
    from policies.models import Cluster

    Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerImpact:
    """Pods of one owner in one namespace that would be refused for the same reasons."""

    namespace: str
    restart: RestartRow

    @property
    def amount(self) -> str:
        """The amount that the first reason is about; empty where it is about none."""
        numbers = self.restart.refusals[0].numbers
        named = ("limit", "request") if "limit" in numbers else ("requested", "request", "ratio")
        return next((numbers[name] for name in named if name in numbers), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftImpact:
    """The running pods of each namespace of a draft, and those that it would refuse."""

    places: Mapping[str, Restarts]

    @property
    def rows(self) -> Sequence[OwnerImpact]:
        """Those of all namespaces, refused by the draft alone first, the most pods first."""
        rows = [
            OwnerImpact(namespace=namespace, restart=row)
            for namespace, restarts in self.places.items()
            for row in restarts.rows
        ]
        return sorted(rows, key=lambda row: (row.restart.is_so_today, -len(row.restart.pods)))

    @property
    def pods(self) -> int:
        """The running pods that were evaluated."""
        return sum(len(each.running.pods) for each in self.places.values())

    @property
    def refused(self) -> int:
        """How many of them would be refused."""
        return sum(each.refused for each in self.places.values())

    @property
    def newly(self) -> int:
        """How many of these are refused only by the draft."""
        return sum(each.newly for each in self.places.values())

    @property
    def unknown(self) -> Sequence[str]:
        """Pods that run and cannot be decided."""
        return [name for each in self.places.values() for name in each.running.unknown]

    @property
    def is_cut(self) -> bool:
        """Whether some namespace has more pods than are evaluated."""
        return any(each.running.is_cut for each in self.places.values())

    @property
    def owners(self) -> int:
        """How many owners have a pod that would be refused."""
        # A pod without an owner is its own.
        return len(
            {
                (row.namespace, row.restart.kind, row.restart.owner or row.restart.pods[0].pod.name)
                for row in self.rows
            }
        )

    @property
    def namespaces(self) -> int:
        """How many namespaces have such a pod."""
        return sum(bool(each.rows) for each in self.places.values())

    @property
    def cause(self) -> str:
        """The one bound that refuses them all; empty where there are several."""
        causes = {each.message.partition(", but")[0] for each in self.violations()}
        return causes.pop() if len(causes) == 1 else ""

    def violations(self) -> Iterable[Violation]:
        """The reasons of all rows."""
        return (each for row in self.rows for each in row.restart.refusals)


def impact_of(
    cluster: Cluster, namespaces: Sequence[str], manifest: Manifest, *, as_enforced: bool = True
) -> DraftImpact:
    """Evaluate the running pods of these namespaces as if recreated; raises DecodeError."""
    running = {namespace: running_in(cluster, namespace) for namespace in namespaces}
    before = {namespace: snapshot.load(cluster.name, namespace) for namespace in namespaces}
    return DraftImpact(
        places={
            namespace: restarts_of(
                pods,
                before=before[namespace],
                after=_after(before[namespace], manifest, as_enforced=as_enforced),
            )
            for namespace, pods in running.items()
        }
    )


def _after(before: PolicySet, manifest: Manifest, *, as_enforced: bool) -> PolicySet:
    return with_unsaved(before, [manifest], as_enforced=as_enforced)


def retried(impact: DraftImpact, cluster: Cluster, manifest: Manifest) -> DraftImpact:
    """The same pods under another version of the draft; nothing is read again but policies."""
    return DraftImpact(
        places={
            namespace: restarts_of(
                each.running,
                before=(before := snapshot.load(cluster.name, namespace)),
                after=_after(before, manifest, as_enforced=True),
            )
            for namespace, each in impact.places.items()
        }
    )
