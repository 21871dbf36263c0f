"""Numbers over a search: its bars over time, from tallies where these can answer."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from admission.models import CappedCount
from admission.record.filters import LENGTHS
from admission.record.search import day_tallies, histogram
from policies import roles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from admission.record.search.search import Sample, Search


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The bars of a search; ``is_tallied``: of all that match, not of the sample alone."""

    bars: Sequence[histogram.Bar]
    is_tallied: bool


def overview(search: Search, sample: Sample, query: Mapping[str, str], user: Any) -> Overview:
    """Bars of the sample; where it is incomplete, of the tallies if these can answer."""
    now = datetime.now(UTC)
    asked = {name: query.get(name, "") for name in search.filter.filters}
    if not sample.is_whole and histogram.can_tally(asked):
        with suppress(LookupError):
            clusters = whole_clusters(user, query.get("cluster", ""))
            bars = histogram.of_tallies(_span(search, query, now), query, clusters, now)
            return Overview(bars=bars, is_tallied=True)
    span = _span(search, query, now, sample.begins)
    return Overview(bars=histogram.of_sample(sample, span, query), is_tallied=False)


def number_of(search: Search, sample: Sample, user: Any) -> CappedCount:
    """The number of matches, exact or "10,000+": the same on the page and for files."""
    if sample.is_whole:
        return CappedCount(len(sample.rows))
    clusters: list[str] | None = []
    with suppress(LookupError):
        clusters = whole_clusters(user, search.query.get("cluster", ""))
    return day_tallies.count(search, clusters)


def whole_clusters(user: Any, asked_cluster: str) -> list[str] | None:
    """The clusters of which the user sees all; None: all there are.

    Raises ``LookupError`` where the user also sees namespaces of other clusters.
    """
    if roles.sees_all(user):
        return None
    if asked_cluster and roles.sees(user, asked_cluster, ""):
        return [asked_cluster]
    bindings = roles.bindings_of(user)
    if asked_cluster or any(binding.namespace for binding in bindings):
        raise LookupError(asked_cluster)
    return [binding.cluster for binding in bindings]


def _span(
    search: Search, query: Mapping[str, str], now: datetime, before: datetime | None = None
) -> histogram.Span:
    asked_for = search.filter.form.cleaned_data
    since, until = asked_for.get("since"), asked_for.get("until")
    if last_length := LENGTHS.get(query.get("last", "")):
        since = max(since, now - last_length) if since else now - last_length
    # The bars of a page further back end where its sample begins.
    until = min(until or now, before or now, now)
    return histogram.Span(since=min(since, until) if since else None, until=until)
