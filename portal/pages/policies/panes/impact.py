"""Impact of a draft: running pods that it would refuse if enforced, by owner; values that pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from admission.explain.restarts import restarts_of
from admission.explain.running_pods import running_in
from engine.decision import Reason
from engine.quantity import Quantity
from policies import snapshot
from policies.drafts.kinds import LIMIT_RANGE
from policies.simulation import with_unsaved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from admission.explain.restarts import RestartRow, Restarts
    from engine.decision import Violation
    from engine.policy import PolicySet
    from policies.drafts.draft import Draft, PolicyPlace
    from policies.models import Cluster

    Manifest = Mapping[str, Any]

MOST_VALUES: Final = 2
"""Values that are tried: each evaluates all running pods again."""
_BOUNDS: Final = {Reason.MAX_CONSTRAINT: "max", Reason.MIN_CONSTRAINT: "min"}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PassingValue:
    """Another amount for a cell, and what it would still refuse."""

    cell: str
    bound: str
    amount: str
    refused: int
    owners: int


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


def passing_values(place: PolicyPlace, draft: Draft, impact: DraftImpact) -> list[PassingValue]:
    """Values of the bound that refuses the most pods: the nearest that pass some, or all of them.

    Only for ranges: limits of quotas depend on what else is charged.
    """
    if place.kind is not LIMIT_RANGE or draft.sheet is None or draft.manifest is None:
        return []
    name = str((draft.manifest.get("metadata") or {}).get("name") or "")
    broken = [each for each in impact.violations() if _is_bound_of(each, name)]
    if not broken:
        return []
    (rule, bound, resource), _ = Counter(map(_bound_key, broken)).most_common(1)[0]
    path = f"spec.limits[{rule}].{bound}[{resource}]"
    cell = place.kind.build(draft.sheet, draft.manifest).places.get(path, "")
    if not cell:
        return []
    amounts = {_offered(each) for each in broken if _bound_key(each) == (rule, bound, resource)}
    ordered = sorted((each for each in amounts if each), key=Quantity.parse, reverse=bound == "max")
    passing = []
    for amount in ordered[:MOST_VALUES]:
        tried = retried(
            impact, place.cluster, _with_amount(draft.manifest, rule, bound, resource, amount)
        )
        passing.append(
            PassingValue(
                cell=cell, bound=bound, amount=amount, refused=tried.refused, owners=tried.owners
            )
        )
    return passing[::-1]


def _is_bound_of(violation: Violation, name: str) -> bool:
    policy = violation.policy
    is_ours = policy is not None and (policy.kind, policy.name) == (LIMIT_RANGE.name, name)
    return is_ours and violation.reason in _BOUNDS and bool(_offered(violation))


def _bound_key(violation: Violation) -> tuple[int, str, str]:
    return (
        violation.rule or 0,
        _BOUNDS.get(violation.reason, ""),
        violation.numbers.get("resource", ""),
    )


def _offered(violation: Violation) -> str:
    """The amount of the pod: its limit beyond a maximum, its request below a minimum."""
    sides = (
        ("limit", "request") if violation.reason is Reason.MAX_CONSTRAINT else ("request", "limit")
    )
    return next((violation.numbers[side] for side in sides if side in violation.numbers), "")


def _with_amount(
    manifest: Manifest, rule: int, bound: str, resource: str, amount: str
) -> dict[str, Any]:
    """The range with another amount in one of its bounds."""
    limits = [dict(item) for item in manifest["spec"]["limits"]]
    limits[rule][bound] = {**limits[rule][bound], resource: amount}
    return {**manifest, "spec": {**manifest["spec"], "limits": limits}}
