"""Differences between a cluster's quota usage and the ledger, with the objects behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.plurals import counted
from portal.pages.clusters.drift.sides import dicts_in
from sync.models import UsageComparison

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

    quota: str
    resource: str
    ledger: str
    cluster: str
    because: list[str]
    since: dt.datetime | None


def ledger_differences(cluster: Cluster) -> list[UsageDifference]:
    """What differed when both were last compared."""
    found = UsageComparison.objects.filter(cluster=cluster, since__isnull=False)
    return [
        UsageDifference(
            quota=f"{each.namespace}/{each.quota}",
            resource=str(one.get("resource", "")),
            ledger=_amount(one.get("ledger")),
            cluster=_amount(one.get("cluster")),
            because=_because(one),
            since=each.since,
        )
        for each in found.order_by("since", "id")[:QUOTAS]
        for one in dicts_in(each.differences)
    ]


def _amount(value: Any) -> str:
    return "–" if value is None else str(value)  # noqa: RUF001 - a dash


def _because(one: dict[str, Any]) -> list[str]:
    named = dicts_in(one.get("objects"))
    words = [
        f"{each.get('kind', '')} {each.get('name', '')}: {each.get('amount', '')}, "
        f"counted by the {each.get('side', '')} only"
        + (f" ({each['why']})" if each.get("why") else "")
        for each in named[:OBJECTS]
    ]
    if len(named) > OBJECTS:
        words.append(f"and {counted(len(named) - OBJECTS, 'more objects')}")
    # Empty where the named objects explain the whole difference.
    if one.get("unexplained") not in (None, "", "0", 0):
        words.append(f"not explained: {one['unexplained']}")
    return words
