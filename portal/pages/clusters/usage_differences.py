"""UsageDifferences: amounts of a quota in ledger and cluster that differ, since when, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.plurals import counted
from sync.models import UsageComparison
from sync.passes.object_sides import dicts_in

if TYPE_CHECKING:
    import datetime as dt

    from policies.models import Cluster

QUOTAS: Final = 20
"""Quotas that are shown, those that have differed longest first."""
OBJECTS: Final = 5
"""Objects of a difference that are named."""


@dataclass(frozen=True, slots=True)
class UsageDifference:
    """One resource of one quota: both amounts, the objects behind the difference, since when."""

    namespace: str
    quota: str
    resource: str
    ledger: str
    cluster: str
    because: list[str]
    since: dt.datetime | None


def ledger_differences(cluster: Cluster) -> list[UsageDifference]:
    """What differed when both were last compared."""
    comparisons = UsageComparison.objects.filter(cluster=cluster, since__isnull=False)
    return [
        UsageDifference(
            namespace=comparison.namespace,
            quota=comparison.quota,
            resource=str(difference.get("resource", "")),
            ledger=_amount_text(difference.get("ledger")),
            cluster=_amount_text(difference.get("cluster")),
            because=_because(difference),
            since=comparison.since,
        )
        for comparison in comparisons.order_by("since", "id")[:QUOTAS]
        for difference in dicts_in(comparison.differences)
    ]


def _amount_text(amount: Any) -> str:
    return "–" if amount is None else str(amount)  # noqa: RUF001 - a dash


def _because(difference: dict[str, Any]) -> list[str]:
    named_objects = dicts_in(difference.get("objects"))
    reasons = [
        f"{one.get('kind', '')} {one.get('name', '')}: {one.get('amount', '')}, "
        f"counted by the {one.get('side', '')} only"
        + (f" ({one['why']})" if one.get("why") else "")
        for one in named_objects[:OBJECTS]
    ]
    if len(named_objects) > OBJECTS:
        reasons.append(f"and {counted(len(named_objects) - OBJECTS, 'more objects')}")
    # Empty where the named objects explain the whole difference.
    if difference.get("unexplained") not in (None, "", "0", 0):
        reasons.append(f"not explained: {difference['unexplained']}")
    return reasons
