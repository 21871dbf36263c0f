"""The next steps of a cluster: the first things that are missing, each with its command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sync.enforcement.gaps import GapCode, GapRemedy, manage
from sync.models import SyncOwnership

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.models import Cluster
    from sync.enforcement.gaps import Gap
    from sync.enforcement.survey import EnforcementSurvey
    from sync.models import WebhookHealth

STEPS: Final = 3
SETUP: Final = (
    GapCode.CONNECTION,
    GapCode.RIGHT,
    GapCode.WEBHOOK,
    GapCode.IMPORT,
    GapCode.OWNERSHIP,
    GapCode.FOLLOWER,
)
"""What a new cluster lacks, in the order in which it is set up."""
TITLES: Final = {
    GapCode.CONNECTION: "The connection",
    GapCode.RIGHT: "The account in the cluster and the webhooks",
    GapCode.WEBHOOK: "The account in the cluster and the webhooks",
    GapCode.IMPORT: "The first import",
    GapCode.OWNERSHIP: "Ownership",
    GapCode.FOLLOWER: "A process that follows the cluster",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """One step: its title, what it is for, and its command."""

    title: str
    words: str
    command: str
    remedy: GapRemedy = GapRemedy.NONE


def next_steps(cluster: Cluster, found: EnforcementSurvey) -> list[NextStep]:
    """The next steps to a cluster whose policies are enforced, three at most."""
    return list(dict.fromkeys(_missing_steps(cluster, found)))[:STEPS]


def is_set_up(cluster: Cluster, found: EnforcementSurvey) -> bool:
    """Whether a cluster once had all that a new one lacks; what fails later has alerts."""
    missing = {gap.code for gap in found.gaps}
    health: WebhookHealth | None = getattr(cluster, "webhook_health", None)
    was_called = health is not None and health.last_refused is not None
    return (
        not missing & {GapCode.RIGHT, GapCode.IMPORT}
        and (was_called or GapCode.WEBHOOK not in missing)
        and SyncOwnership.objects.filter(cluster=cluster).exists()
    )


def _missing_steps(cluster: Cluster, found: EnforcementSurvey) -> Iterator[NextStep]:
    first_gaps: dict[str, Gap] = {}
    for gap in found.gaps:
        # One command may mend several gaps; one gap for each namespace is one step.
        if gap.code in SETUP and gap.code is not GapCode.OWNERSHIP:
            first_gaps.setdefault(gap.command, gap)
    for code in SETUP:
        if code is GapCode.OWNERSHIP:
            yield from _ownership_step(cluster)
        for gap in first_gaps.values():
            if gap.code is code:
                yield NextStep(
                    title=TITLES[code], words=gap.words, command=gap.command, remedy=gap.remedy
                )


def _ownership_step(cluster: Cluster) -> Iterator[NextStep]:
    if not SyncOwnership.objects.filter(cluster=cluster).exists():
        yield NextStep(
            title=TITLES[GapCode.OWNERSHIP],
            words="The portal writes only what it owns: an object, a namespace or the cluster. "
            "The preview shows what it would write.",
            command=manage("cluster_ownership", cluster, "preview"),
            remedy=GapRemedy.OWN,
        )
