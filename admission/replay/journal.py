"""Quotas of a proposal replayed over time: their journals read, each against its proposed hard."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from admission.replay.quotas import JournalChange, replay_quota
from engine.policy import Enforcement
from engine.resource_list import equals, parse
from policies.ledger.entries import entries_of, start_of
from policies.models import LedgerEntry, QuotaUsage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from admission.replay.policies import Proposal, ReplayPolicies
    from admission.replay.scope import ReplayScope
    from engine.policy import ResourceQuota
    from policies.snapshot import ClusterPolicies

MOST_QUOTAS: Final = 40
_CHUNK: Final = 2000
_COLUMNS: Final = (
    "quota_uid", "resource", "object_uid", "object_name", "action", "before", "after", "cause",
    "reference", "created",
)  # fmt: skip
_REFUSABLE: Final = (LedgerEntry.Action.CHARGE, LedgerEntry.Action.RESIZE)


class QuotaState(StrEnum):
    """Whether the journal tells what would have become of a quota."""

    REPLAYED = "replayed"
    NEW = "new"
    SCOPES_CHANGED = "scopes-changed"
    NOT_ENFORCED = "not-enforced"


QUOTA_STATES: Final = [state.value for state in QuotaState]
"""The same for OpenAPI."""


def replay_quotas(
    cluster: ClusterPolicies,
    sides: tuple[ReplayPolicies, ReplayPolicies],
    proposal: Proposal,
    scope: ReplayScope,
) -> dict[str, Any]:
    """Replay the quotas whose hard values or scopes differ between base and draft, as JSON."""
    base, draft = sides
    found: list[dict[str, Any]] = []
    left_out = 0
    for namespace in proposal.namespaces:
        stored = {quota.name: quota for quota in base.of(namespace).resource_quotas}
        for quota in draft.of(namespace).resource_quotas:
            before = stored.get(quota.name)
            if before is not None and _is_alike(before, quota):
                continue
            if len(found) == MOST_QUOTAS:
                left_out += 1
                continue
            named = {"namespace": namespace, "quota": quota.name}
            state = _state_of(before, quota)
            report = None
            if state is QuotaState.REPLAYED and before is not None:
                uid = cluster.quota_keys(namespace)[quota.name].uid
                report = _replay_one((cluster.id, uid), before, quota, scope).render()
                report["hard_before"] = {
                    name: str(amount) for name, amount in before.spec_hard.items()
                }
            found.append({**named, "state": state.value, "report": report})
    return {"quotas": found, "quotas_left_out": left_out}


def _is_alike(before: ResourceQuota, after: ResourceQuota) -> bool:
    is_same_mode = before.enforcement is after.enforcement
    return is_same_mode and _has_scopes(before, after) and equals(before.spec_hard, after.spec_hard)


def _has_scopes(before: ResourceQuota, after: ResourceQuota) -> bool:
    return sorted(before.scopes) == sorted(after.scopes) and (before.scope_selector or ()) == (
        after.scope_selector or ()
    )


def _state_of(before: ResourceQuota | None, after: ResourceQuota) -> QuotaState:
    if before is None:
        return QuotaState.NEW
    if not _has_scopes(before, after):
        return QuotaState.SCOPES_CHANGED
    modes = (before.enforcement, after.enforcement)
    # What only watches is never charged, and makes nobody wait.
    if any(mode is not Enforcement.ENFORCE for mode in modes):
        return QuotaState.NOT_ENFORCED
    return QuotaState.REPLAYED


def _replay_one(
    quota_key: tuple[int, UUID], before: ResourceQuota, after: ResourceQuota, scope: ReplayScope
) -> Any:
    cluster_id, uid = quota_key
    entries = entries_of(cluster_id, uid).filter(created__gte=scope.since).only(*_COLUMNS)
    usage = QuotaUsage.objects.filter(cluster_id=cluster_id, quota_uid=uid).first()
    used_now = {uid: parse(usage.used if usage else {})}
    start = start_of(entries.order_by("id").iterator(_CHUNK), used_now)
    in_time = entries.filter(created__lt=scope.until).exclude(action=LedgerEntry.Action.RECOUNT)
    return replay_quota(
        _changes(in_time.order_by("id").iterator(_CHUNK)),
        hard=after.spec_hard,
        start=start.get(uid, {}),
        known=before.spec_hard,
        period=(scope.since, scope.until),
    )


def _changes(entries: Iterator[LedgerEntry]) -> Iterator[JournalChange]:
    for entry in entries:
        is_admission = entry.cause == LedgerEntry.Cause.ADMISSION
        yield JournalChange(
            at=entry.created,
            object_key=f"{entry.resource}/{entry.object_uid}",
            name=f"{entry.resource} {entry.object_name or entry.object_uid}",
            before=parse(entry.before),
            after=parse(entry.after),
            may_wait=is_admission and entry.action in _REFUSABLE,
            decision=entry.reference if is_admission else "",
        )
