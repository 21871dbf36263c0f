"""Running pods of many namespaces that a namespace class's new version would refuse."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from admission.explain.restarts import restarts_of
from admission.explain.running_pods import running_in
from engine.errors import DecodeError
from policies import snapshot
from policies.models import Charge, Cluster
from policies.simulation import with_proposed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.policy import PolicySet

MOST_NAMESPACES: Final = 200
"""Namespaces whose pods are evaluated, those with pods in the ledger first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A policy of a namespace before and after a change; None for an absent one."""

    cluster: str
    namespace: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRestarts:
    """One namespace with pods that could not restart after the change, and could today."""

    cluster: str
    namespace: str
    refused: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRestarts:
    """The pods of the evaluated namespaces; ``skipped`` namespaces were too many.

    ``unknown`` pods run and cannot be decided.
    """

    pods: int = 0
    unknown: int = 0
    evaluated: int = 0
    skipped: int = 0
    rows: tuple[NamespaceRestarts, ...] = ()

    @property
    def refused(self) -> int:
        """How many could not restart that can today."""
        return sum(row.refused for row in self.rows)


def restarts_of_changes(changes: Sequence[PolicyChange]) -> ClassRestarts:
    """Evaluate the running pods of all changed namespaces as if recreated afterwards."""
    by_place: dict[tuple[str, str], list[PolicyChange]] = defaultdict(list)
    for change in changes:
        by_place[change.cluster, change.namespace].append(change)
    busy = _with_pods({cluster for cluster, _ in by_place})
    places = sorted(by_place, key=lambda place: (place not in busy, place))
    pods = unknown = 0
    rows: list[NamespaceRestarts] = []
    clusters = {each.name: each for each in Cluster.objects.filter(name__in={c for c, _ in places})}
    for place in places[:MOST_NAMESPACES]:
        cluster, namespace = place
        running = running_in(clusters[cluster], namespace)
        pods += len(running.pods)
        unknown += len(running.unknown)
        if not running.pods:
            continue
        before = snapshot.load(cluster, namespace)
        try:
            restarts = restarts_of(running, before=before, after=_after(before, by_place[place]))
        except DecodeError:
            unknown += len(running.pods)
            continue
        if newly := [row for row in restarts.rows if not row.is_so_today]:
            rows.append(
                NamespaceRestarts(
                    cluster=cluster,
                    namespace=namespace,
                    refused=sum(len(row.pods) for row in newly),
                    message=newly[0].refusals[0].message,
                )
            )
    return ClassRestarts(
        pods=pods,
        unknown=unknown,
        evaluated=min(len(places), MOST_NAMESPACES),
        skipped=max(0, len(places) - MOST_NAMESPACES),
        rows=tuple(rows),
    )


def _with_pods(clusters: set[str]) -> set[tuple[str, str]]:
    """The namespaces whose pods the ledger counts."""
    charges = Charge.objects.filter(cluster__name__in=clusters, resource="pods")
    open_charges = charges.exclude(state=Charge.State.RELEASED).order_by()
    return set(open_charges.values_list("cluster__name", "namespace").distinct())


def _after(before: PolicySet, changes: Sequence[PolicyChange]) -> PolicySet:
    gone = {
        (change.before["kind"], change.before["metadata"]["name"])
        for change in changes
        if change.before is not None and change.after is None
    }
    contents = [change.after for change in changes if change.after is not None]
    return with_proposed(before, contents=contents, gone=gone)
