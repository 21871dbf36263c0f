"""QuotaPanel: one quota beside the board or as a page: limits, usage, consumers, refusals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from admission.record.consumers import consumers_of
from admission.record.demand import refused_owners
from policies import roles
from policies.models import Cluster, PolicyRevision, ResourceQuota
from portal.pages.quotas.limits import LimitEdit, read_edit, tried
from portal.pages.quotas.usage_plot import DAYS, UsagePlot, limit_of, usage_plot
from portal.pages.shell.quota_lines import decisions_of, may_raise
from sync.enforcement.survey import namespaces_left_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from admission.record.consumers import QuotaConsumers
    from admission.record.demand import RefusedOwners
    from portal.pages.shell.quota_lines import QuotaLine

REFUSAL_DAYS: Final = 7
REVISIONS_READ: Final = 50
REVISIONS_SHOWN: Final = 8
TABS: Final = ("consumers", "denials", "changes", "requests")


@dataclass(frozen=True, slots=True)
class LimitChange:
    """One revision of a quota, with the limits that it changed."""

    revision: PolicyRevision
    limits: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class QuotaPanel:
    """What is shown of one quota; ``seen`` is the revision that an edit is based on.

    ``left_out_of`` is its cluster, if its webhooks leave its namespace out; ``sees_cluster`` tells
    whether its pages may be opened.
    """

    line: QuotaLine
    left_out_of: Cluster | None
    sees_cluster: bool
    edit: LimitEdit
    seen: int
    may_change: bool
    is_raising: bool
    plot: UsagePlot
    tab: str
    consumers: QuotaConsumers | None
    denials: RefusedOwners
    changes: Sequence[LimitChange]
    more_changes: bool


def panel_of(request: HttpRequest, key: str, lines: Sequence[QuotaLine]) -> QuotaPanel | None:
    """The panel of the quota with this key among the lines; None where there is none."""
    line = next((each for each in lines if each.key == key), None)
    return build_panel(request, line, lines) if line else None


def build_panel(
    request: HttpRequest,
    line: QuotaLine,
    lines: Sequence[QuotaLine],
    edit: LimitEdit | None = None,
) -> QuotaPanel:
    """Everything about one quota; a fixed number of queries."""
    cluster, namespace, name = line.place
    query, user = request.GET, request.user
    may_change = may_raise(user, line)
    is_raising = may_change and query.get("raise") == "1"
    if edit is None:
        edit = tried(read_edit(line, {}, suggests=is_raising), user, lines)
    stored = ResourceQuota.objects.filter(pk=line.placed.key.id).values_list("revision", flat=True)
    revisions = list(
        PolicyRevision.objects.of(
            cluster=cluster, kind="ResourceQuota", name=name, namespace=namespace
        ).order_by("-number")[: REVISIONS_READ + 1]
    )
    resource, days = query.get("show", ""), query.get("days", "")
    consumers = consumers_of(Cluster(pk=line.placed.cluster_id), namespace, [_by_shown(line)])
    return QuotaPanel(
        line=line,
        left_out_of=_left_out_of(line),
        sees_cluster=roles.sees(user, cluster, ""),
        edit=edit,
        seen=stored.first() or 0,
        may_change=may_change,
        is_raising=is_raising,
        plot=usage_plot(
            line,
            revisions,
            resource=resource if resource in line.placed.quota.hard else line.level.resource,
            days=int(days) if days in {str(each) for each in DAYS} else max(DAYS),
        ),
        tab=query.get("tab", "") if query.get("tab") in TABS else TABS[0],
        consumers=consumers[0] if consumers else None,
        denials=refused_owners(
            decisions_of(user, cluster),
            line.place,
            datetime.now(UTC) - timedelta(days=REFUSAL_DAYS),
        ),
        changes=[LimitChange(each, _limit_changes(each)) for each in revisions[:REVISIONS_SHOWN]],
        more_changes=len(revisions) > REVISIONS_SHOWN,
    )


def _left_out_of(line: QuotaLine) -> Cluster | None:
    found = Cluster.objects.select_related("webhook_health").filter(pk=line.placed.cluster_id)
    cluster = found.first()
    return cluster if cluster and line.placed.namespace in namespaces_left_out(cluster) else None


def _by_shown(line: QuotaLine) -> Any:
    """The quota as if only the shown resource were used, by which its consumers are ordered."""
    level = line.level
    used = {level.resource: level.used} if level.used is not None else {}
    return replace(line.placed.quota, used=used)


def _limit_changes(revision: PolicyRevision) -> list[tuple[str, str, str]]:
    """The limits that a revision changed: resource, before and after."""
    names: dict[str, None] = {}
    for manifest in (revision.before, revision.after):
        hard = ((manifest or {}).get("spec") or {}).get("hard") or {}
        names |= dict.fromkeys(hard)
    found = []
    for name in names:
        before, after = limit_of(revision.before, name), limit_of(revision.after, name)
        if before != after:
            found.append((name, str(before or "none"), str(after or "none")))
    return found
