"""ModeObservation: what a policy that only warns or audits has found since it began to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from admission.record.policy_hits import PolicyHits, hits_since
from engine.policy import Enforcement
from policies.drafts.danger import mode_of

if TYPE_CHECKING:
    import datetime as dt

    from portal.pages.policies.page import PolicyPage

REVISIONS: Final = 100
"""Revisions that are read to find the one with which the mode began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeObservation:
    """The mode, since when, and the requests that it would have refused.

    ``counted_since`` is later than ``since`` where there are too many decisions to count.
    """

    mode: str
    since: dt.datetime
    counted_since: dt.datetime
    would_deny: int

    @property
    def is_cut(self) -> bool:
        """Whether older decisions are not counted."""
        return self.counted_since > self.since


def observed_by(page: PolicyPage) -> ModeObservation | None:
    """What the page's stored policy has observed; None of one that enforces."""
    place, manifest = page.place, page.manifest
    if manifest is None or place.namespace is None:
        return None
    mode = mode_of(manifest)
    if mode is Enforcement.ENFORCE:
        return None
    since = None
    for created, after in page.history().values_list("created", "after")[:REVISIONS]:
        if after is None or mode_of(after) is not mode:
            break
        since = created
    if since is None:
        return None
    cluster, namespace = place.cluster.name, place.namespace_name
    found = hits_since(since, cluster=cluster, namespace=namespace)
    hits = found.by_policy.get((cluster, place.kind.name, namespace, place.name), PolicyHits())
    return ModeObservation(
        mode=mode.value, since=since, counted_since=found.since, would_deny=hits.would_deny
    )
