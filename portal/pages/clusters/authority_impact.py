"""The impact of switching a cluster's authority, from the record and both sides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from admission.models import AuditEvent
from engine.policy import Authority
from policies import services
from policies.simulation.authority_preview import AuthorityImpact, Judged, what_changes
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.models import Cluster

DAYS: Final = 7
"""Days that are looked back, unless somebody asks for others."""
LONGEST: Final = 90
_READ: Final = (
    "created", "namespace", "name", "violations", "observed", "reasons", "more_violations",
    "more_observed",
)  # fmt: skip
DECISIONS: Final = 5000
"""The newest decisions that are judged again at most."""


def preview(
    cluster: Cluster, to: str, *, days: int = DAYS, most: int = DECISIONS
) -> AuthorityImpact:
    """Look at the newest decisions of some days, and at what both sides do not have in common."""
    return what_changes(
        Authority(to),
        _judged(cluster, days, most),
        missing=services.not_native(cluster),
        differing=_differing(cluster),
    )


def _judged(cluster: Cluster, days: int, most: int) -> Iterator[Judged]:
    since = datetime.now(UTC) - timedelta(days=days)
    rows = AuditEvent.objects.for_cluster(cluster.name).filter(
        created__gte=since, phase="validate", dry_run=False
    )
    # Of nine columns of JSON two are read: to decode the others would be most of the work.
    read = rows.only(*_READ).with_authority()
    for event in read.newest_by_pieces(most):
        refused = [found["reason"] for found in event.violations]
        observed = [found["reason"] for found in event.observed]
        # Of what is not listed the reasons are kept, though not who they are of.
        others = [each for each in event.reasons.split() if each not in {*refused, *observed}]
        yield Judged(
            id=event.pk,
            namespace=event.namespace,
            target=event.target,
            authority=event.authority,
            refused=(*refused, *others) if event.more_violations else tuple(refused),
            observed=(*observed, *others) if event.more_observed else tuple(observed),
            message=_first(event),
        )


def _first(event: AuditEvent) -> str:
    found = event.violations or event.observed
    return str(found[0]["message"]) if found else ""


def _differing(cluster: Cluster) -> list[str]:
    rows = SyncedObject.objects.filter(
        cluster=cluster, kind__in=("LimitRange", "ResourceQuota"), gone=None
    ).exclude(state=SyncedObject.State.IN_SYNC)
    ordered = rows.exclude(differences=[]).order_by("namespace", "kind", "name")
    return [f"{row.kind} {row.namespace}/{row.name}" for row in ordered]
