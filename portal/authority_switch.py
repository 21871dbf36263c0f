"""The effect of another authority on recorded decisions: ``preview`` for page, API and command."""

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
"""Days that are looked back by default."""
LONGEST: Final = 90
DECISIONS: Final = 5000
"""The most decisions that are evaluated again."""
ENFORCED_BY_BOTH: Final = ("LimitRange", "ResourceQuota")
_READ_COLUMNS: Final = (
    "created", "namespace", "name", "violations", "observed", "reasons", "more_violations",
    "more_observed", "is_native",
)  # fmt: skip


def other_authority(cluster: Cluster) -> Authority:
    """The authority that is not the cluster's."""
    is_native = cluster.authority == Authority.NATIVE
    return Authority.PORTAL if is_native else Authority.NATIVE


def preview(
    cluster: Cluster, to: str, *, days: int = DAYS, most: int = DECISIONS
) -> AuthorityImpact:
    """Evaluate the newest decisions of some days under the other authority."""
    differing_objects = SyncedObject.objects.filter(
        cluster=cluster, kind__in=ENFORCED_BY_BOTH, gone=None
    ).exclude(state=SyncedObject.State.IN_SYNC)
    differing = differing_objects.exclude(differences=[]).order_by("namespace", "kind", "name")
    return what_changes(
        Authority(to),
        judged(cluster, days, most),
        missing=services.not_native(cluster),
        differing=[f"{synced.kind} {synced.namespace}/{synced.name}" for synced in differing],
    )


def judged(cluster: Cluster, days: int, most: int) -> Iterator[Judged]:
    """The newest decisions with their refusals and observations, which a switch may exchange."""
    since = datetime.now(UTC) - timedelta(days=days)
    validate_events = AuditEvent.objects.for_cluster(cluster.name).filter(
        created__gte=since, phase="validate", dry_run=False
    )
    # Two of nine JSON columns are read: decoding the others would be most of the work.
    events_read = validate_events.only(*_READ_COLUMNS).with_authority()
    for event in events_read.newest_by_pieces(most):
        refused_for = [each["reason"] for each in event.violations]
        observed = [each["reason"] for each in event.observed]
        # Of unlisted violations the record has the reasons alone, without their policies.
        unlisted = [each for each in event.reasons.split() if each not in {*refused_for, *observed}]
        first_violations = event.violations or event.observed
        yield Judged(
            id=event.pk,
            namespace=event.namespace,
            target=event.target,
            authority=event.authority,
            refused=(*refused_for, *unlisted) if event.more_violations else tuple(refused_for),
            observed=(*observed, *unlisted) if event.more_observed else tuple(observed),
            message=str(first_violations[0]["message"]) if first_violations else "",
        )
