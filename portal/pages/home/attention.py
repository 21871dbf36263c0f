"""AttentionItem: what needs a person, with the next step: broken, waiting, soon."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from admission.record.demand import demand_by_quota
from policies import roles
from policies.change_sets.states import ChangeState
from policies.plurals import counted
from policies.services.changes import sees_rollout, visible_changes
from policies.services.changes.rollout import TRIPPED_ELSEWHERE
from portal.pages.shell.quota_lines import may_raise
from portal.pages.shell.quota_trends import trends

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from admission.record.demand import WaitingOwner
    from portal.pages.clusters.status import ClusterStatus
    from portal.pages.home.audits import AuditingPolicy
    from portal.pages.shell.quota_lines import QuotaLine
    from sync.models import ClusterAlert

STUCK: Final = 2
"""Refusals within the hour from which an owner is stuck; one may be a person's attempt."""
STUCK_SHOWN, FULL_SHOWN, FILLING_SHOWN = 3, 2, 2
UNREVIEWED_SHOWN: Final = 3
FORECAST: Final = 25
"""Quotas whose usage of 14 days is read; a fleet may have hundreds near their limits."""
CERTIFICATE_DAYS: Final = 30
LONGEST: Final = 160
SETTLED: Final = frozenset({"conflict", "deletions-held"})
"""Kinds of alerts about objects that wait to be settled."""


class Urgency(IntEnum):
    """The order of the list."""

    BROKEN = 0
    WAITING = 1
    SOON = 2


@dataclass(frozen=True, slots=True)
class ItemAction:
    """A button: its words, its page, whether it is the primary one."""

    label: str
    address: str
    is_primary: bool = False


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """One line: an icon with its colour, what it is, where, since when, and what to do."""

    urgency: Urgency
    icon: str
    look: str
    title: str
    detail: str = ""
    place: str = ""
    since: datetime | None = None
    steps: Sequence[ItemAction] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of the fleet, as far as the reader sees it."""

    user: Any
    problems: Sequence[str]
    waiting: Sequence[WaitingOwner]
    lines: Sequence[QuotaLine]
    alerts: Sequence[ClusterAlert]
    statuses: Sequence[ClusterStatus]
    audits: Sequence[AuditingPolicy]
    shows_cluster: bool

    def place(self, cluster: str, namespace: str = "") -> str:
        """A place in words; a chosen cluster is not repeated."""
        if not self.shows_cluster:
            return namespace
        return f"{cluster} / {namespace}" if namespace else cluster


def attention(situation: Situation) -> list[AttentionItem]:
    """Everything that needs a person, the most urgent first; three queries."""
    items = [
        *(
            AttentionItem(
                Urgency.BROKEN, "alert-triangle", "red", problem[:1].upper() + problem[1:]
            )
            for problem in situation.problems
        ),
        *_stuck(situation),
        *_full(situation),
        *_tripped(situation),
        *_alerted(situation),
        *_to_settle(situation),
        *_filling(situation),
        *_audited(situation),
        *_unreviewed(situation),
        *_ending(situation),
    ]
    return sorted(items, key=lambda item: item.urgency)


def _board(situation: Situation, line: QuotaLine, *, raises: bool = False) -> str:
    query = {"open": line.key, **({"raise": "1"} if raises else {})}
    if not situation.shows_cluster:
        query["cluster"] = line.placed.cluster
    return f"{reverse('quota-board')}?{urlencode(query)}"


def _stuck(situation: Situation) -> Iterator[AttentionItem]:
    """Owners that were refused again and again."""
    line_of = {line.place: line for line in situation.lines}
    stuck = [owner for owner in situation.waiting if owner.number >= STUCK]
    for position, owner in enumerate(stuck[:STUCK_SHOWN]):
        steps = [ItemAction("Why", reverse("decision-detail", args=[owner.decision]))]
        quota = next((line_of[key] for key in demand_by_quota([owner]) if key in line_of), None)
        if quota and may_raise(situation.user, quota):
            steps.append(
                ItemAction("Raise limit", _board(situation, quota, raises=True), not position)
            )
        yield AttentionItem(
            Urgency.BROKEN,
            "ban",
            "red",
            f"{owner.name or owner.kind} is stuck",
            counted(owner.number, "denials"),
            situation.place(owner.cluster, owner.namespace),
            owner.since,
            steps,
        )
    if more := len(stuck[STUCK_SHOWN:]):
        address = f"{reverse('decision-list')}?verdict=denied"
        yield AttentionItem(
            Urgency.BROKEN,
            "ban",
            "red",
            f"{counted(more, 'more owners')} stuck",
            steps=[ItemAction("Open in Decisions", address)],
        )


def _unreviewed(situation: Situation) -> Iterator[AttentionItem]:
    """Changes that were published without approvals, until somebody else has reviewed them."""
    flagged = visible_changes(situation.user).filter(unreviewed=True)
    for change in flagged.order_by("-pk")[:UNREVIEWED_SHOWN]:
        yield AttentionItem(
            Urgency.WAITING,
            "git-pull-request",
            "amber",
            f"#{change.pk} was published without approvals",
            change.title,
            since=change.updated,
            steps=[ItemAction("Review", reverse("change", args=[change.pk]))],
        )


def _full(situation: Situation) -> Iterator[AttentionItem]:
    """Quotas that have nothing left, but for those of which an owner above tells."""
    full = [line for line in situation.lines if line.look == "full" and not line.is_denying]
    for line in full[:FULL_SHOWN]:
        yield AttentionItem(
            Urgency.BROKEN,
            "gauge",
            "red",
            f"{line.placed.namespace} / {line.placed.quota.name} is full",
            f"{line.level.resource} {line.level.used} of {line.level.hard}",
            situation.place(line.placed.cluster, line.placed.namespace),
            steps=[ItemAction("Open quota", _board(situation, line))],
        )
    if len(full) > FULL_SHOWN:
        address = f"{reverse('quota-board')}?needs=attention"
        yield AttentionItem(
            Urgency.BROKEN,
            "gauge",
            "red",
            f"{counted(len(full) - FULL_SHOWN, 'more quotas')} full",
            steps=[ItemAction("Open quotas", address)],
        )


def _tripped(situation: Situation) -> Iterator[AttentionItem]:
    """Roll-outs that a guard has stopped, until somebody goes on or takes them back."""
    stopped = visible_changes(situation.user).filter(state=ChangeState.STOPPED.value)
    for change in stopped.exclude(rollout__tripped="").select_related("rollout")[:STUCK_SHOWN]:
        is_seen = sees_rollout(situation.user, change)
        yield AttentionItem(
            Urgency.BROKEN,
            "alert-triangle",
            "red",
            f"The roll-out of change #{change.pk} stopped by itself",
            change.rollout.tripped[:LONGEST] if is_seen else TRIPPED_ELSEWHERE,
            since=change.updated,
            steps=[ItemAction("Open roll-out", reverse("change-rollout", args=[change.pk]))],
        )


def _alerted(situation: Situation) -> Iterator[AttentionItem]:
    """Open alerts of clusters: what the sync and the checks of webhooks found."""
    in_conflict = {status.cluster.pk for status in situation.statuses if status.conflicts}
    for alert in situation.alerts:
        # The line that leads to settling them counts these.
        if alert.kind in SETTLED and alert.cluster_id in in_conflict:
            continue
        is_critical = alert.severity == "critical"
        yield AttentionItem(
            Urgency.BROKEN if is_critical else Urgency.WAITING,
            "alert-triangle",
            "red" if is_critical else "amber",
            alert.message[:LONGEST],
            place=situation.place(alert.cluster.name),
            since=alert.since,
            steps=[
                ItemAction("Open cluster", reverse("cluster-detail", args=[alert.cluster.name]))
            ],
        )


def _to_settle(situation: Situation) -> Iterator[AttentionItem]:
    """Objects that differ between the portal and a cluster."""
    for status in situation.statuses:
        drifted, conflicts = status.drifted, status.conflicts
        if not drifted and not conflicts:
            continue
        words = f"{counted(drifted, 'objects')} drifted" if drifted else ""
        conflict_words = counted(conflicts, "conflicts") if conflicts else ""
        name = status.cluster.name
        yield AttentionItem(
            Urgency.WAITING,
            "arrows-exchange",
            "amber",
            words or conflict_words,
            conflict_words if words else "",
            situation.place(name),
            steps=[ItemAction("Settle", reverse("cluster-objects", args=[name]))],
        )


def _filling(situation: Situation) -> Iterator[AttentionItem]:
    """Quotas that will be full within days, among those that are nearest to their limits."""
    near = [line for line in situation.lines if line.look == "near" and not line.is_denying]
    near = near[:FORECAST]
    forecasts = [
        (line, trend)
        for line, trend in zip(near, trends(near), strict=True)
        if trend.look == "near"
    ]
    for line, trend in forecasts[:FILLING_SHOWN]:
        yield AttentionItem(
            Urgency.SOON,
            "gauge",
            "amber",
            f"{line.placed.namespace} / {line.placed.quota.name} is full in {trend.word}",
            f"{line.level.resource} {line.level.used} of {line.level.hard}",
            situation.place(line.placed.cluster, line.placed.namespace),
            steps=[ItemAction("Open quota", _board(situation, line))],
        )


def _audited(situation: Situation) -> Iterator[AttentionItem]:
    """Policies in audit that would deny."""
    for policy in situation.audits:
        permission = roles.writing(policy.kind)
        may_promote = roles.may(
            situation.user, permission, cluster=policy.cluster, namespace=policy.namespace
        )
        label = "Promote to enforce…" if may_promote else "Open policy"
        unchanged = f", unchanged for {counted(policy.days, 'days')}" if policy.days else ""
        yield AttentionItem(
            Urgency.SOON,
            "eye",
            "violet",
            f"{policy.name} runs in {policy.mode}",
            f"would deny {policy.number:,} in {policy.words}{unchanged}",
            situation.place(policy.cluster, policy.namespace),
            steps=[ItemAction(label, policy.address)],
        )


def _ending(situation: Situation) -> Iterator[AttentionItem]:
    """Certificates and credentials near their end."""
    for status in situation.statuses:
        days = certificate_days(status)
        if days is not None and days <= CERTIFICATE_DAYS:
            name = status.cluster.name
            yield AttentionItem(
                Urgency.SOON,
                "key",
                "amber",
                f"A certificate ends in {counted(days, 'days')}"
                if days >= 0
                else "A certificate has ended",
                place=situation.place(name),
                steps=[ItemAction("Open cluster", reverse("cluster-detail", args=[name]))],
            )


def certificate_days(status: ClusterStatus) -> int | None:
    """Days until the first certificate or credential of the cluster ends; None if not known."""
    webhook_health: Any = getattr(status.cluster, "webhook_health", None)
    certificate_end = webhook_health.certificate_expires if webhook_health else None
    return (certificate_end - timezone.now()).days if certificate_end else None


def quotas_in_need(lines: Iterable[QuotaLine]) -> int:
    """How many quotas need attention."""
    return sum(line.needs_attention for line in lines)
