"""Sums of charges: ``settle`` a quota's usage, open accounts, RecountDifference, repair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import transaction

from engine.quantity import ZERO
from engine.resource_list import add, parse, stored, to_json
from engine.resource_quota import is_tracked
from policies.ledger.book import (
    CONFIRMED,
    LONGEST_NAME,
    OPENING_NAME,
    OPENING_RESOURCE,
    OPENING_UID,
    statements,
    stored_uid,
)
from policies.ledger.entries import led_to
from policies.ledger.rows import NewCharge, NewEntry, json_text, text_of
from policies.models import Charge, Cluster, LedgerEntry, QuotaUsage, ResourceQuotaRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from uuid import UUID

    from engine.resource_list import ResourceList
    from policies.ledger.entries import JournalLine
    from policies.models import ResourceQuota


OPEN_STATES = (Charge.State.RESERVED, Charge.State.CONFIRMED)


def settle(quota: ResourceQuota) -> None:
    """Set ``used`` to the sum of the charges; the quota's usage must be locked, or be new.

    Call it whenever the rows of a quota change: they decide which names are tracked.
    """
    cluster_of_quota, namespace = quota.owner, quota.namespace_name
    usage_rows = QuotaUsage.objects.filter(cluster_id=cluster_of_quota.pk, quota_id=quota.pk)
    is_new_account = not usage_rows.exists()
    used = expected(quota, cluster_of_quota.pk, locked=is_new_account)
    usage = QuotaUsage(
        quota=quota, cluster=cluster_of_quota, quota_uid=quota.uid, namespace=namespace, used=used
    )
    # An insert that fails if somebody else has begun the ledger of this quota.
    if is_new_account:
        usage.save(force_insert=True)
    else:
        usage_rows.update(used=used)


def settle_many(cluster_id: int, quotas: Sequence[ResourceQuota]) -> None:
    """Settle several stored quotas of a cluster, whose usage is locked, in few statements."""
    usage_rows = QuotaUsage.objects.filter(cluster_id=cluster_id, quota__in=quotas)
    usage_of = {usage.quota_id: usage for usage in usage_rows}
    sums = sum_of_charges(cluster_id, [quota.uid for quota in quotas])
    resources_of: dict[int, list[str]] = {quota.pk: [] for quota in quotas}
    hard_rows = ResourceQuotaRow.objects.filter(quota__in=quotas)
    for pk, resource in hard_rows.values_list("quota_id", "resource"):
        resources_of[pk].append(resource)
    changed = []
    for quota in quotas:
        usage = usage_of.get(quota.pk)
        if usage is None:
            settle(quota)
            continue
        used = _tracked(resources_of[quota.pk], sums[quota.uid])
        if usage.used != used:
            usage.used = used
            changed.append(usage)
    QuotaUsage.objects.bulk_update(changed, ["used"], batch_size=100)


def open_accounts(cluster: Cluster, quotas: Sequence[tuple[ResourceQuota, ResourceList]]) -> None:
    """Begin the ledger of new quotas, each with its opening balance, in two statements.

    Only for quotas with new uids: nothing can have been charged to them. Their rows may be drafts.
    """
    openings = [
        opening_row(quota, cluster.pk, amounts, before={}) for quota, amounts in quotas if amounts
    ]
    if openings:
        statements().write((), openings)
    QuotaUsage.objects.bulk_create(
        QuotaUsage(
            quota=quota,
            cluster=cluster,
            quota_uid=quota.uid,
            namespace=quota.namespace_name,
            # As a reader gets them: storage may round amounts.
            used=_tracked(
                (row.resource for row in quota.rows_of("rows")), stored(parse(to_json(amounts)))
            ),
        )
        for quota, amounts in quotas
    )


def opening_row(
    quota: ResourceQuota, cluster_id: int, amounts: ResourceList, *, before: ResourceList
) -> NewCharge:
    """The opening balance of a quota, from the figures of a manifest's status."""
    quota_place = (cluster_id, stored_uid(quota.uid), quota.namespace_name)
    opening = (OPENING_RESOURCE, OPENING_UID, OPENING_NAME, text_of(amounts), CONFIRMED)
    figures = (LedgerEntry.Action.OPENING.value, LedgerEntry.Cause.FIGURES.value, "")
    return NewCharge(*quota_place, *opening, text_of(before), *figures)


def _tracked(resources: Iterable[str], charged: ResourceList) -> dict[str, str]:
    return to_json({name: charged.get(name, ZERO) for name in resources if is_tracked(name)})


def expected(quota: ResourceQuota, cluster_id: int, *, locked: bool = False) -> dict[str, str]:
    """The sum of charges for the tracked names of a quota's ``hard``.

    ``locked`` locks the charges: a restored quota has some, and no usage row to lock instead.
    """
    charged = sum_of_charges(cluster_id, [quota.uid], locked=locked)[quota.uid]
    hard_resources = ResourceQuotaRow.objects.filter(quota=quota).values_list("resource", flat=True)
    return _tracked(hard_resources, charged)


def sum_of_charges(
    cluster_id: int, quota_uids: Collection[UUID], *, locked: bool = False
) -> dict[UUID, ResourceList]:
    """Sum the charges that are not released, by quota uid and resource."""
    sums_by_quota: dict[UUID, ResourceList] = {uid: {} for uid in quota_uids}
    charges = Charge.objects.filter(
        cluster_id=cluster_id, quota_uid__in=quota_uids, state__in=OPEN_STATES
    ).order_by("id")
    if locked:
        # In id order, like all locks of charges.
        charges = charges.select_for_update(no_key=True)
    for uid, amounts in charges.values_list("quota_uid", "amounts").iterator():
        sums_by_quota[uid] = stored(add(sums_by_quota[uid], parse(amounts)))
    return sums_by_quota


@dataclass(frozen=True, slots=True, kw_only=True)
class RecountDifference:
    """A name of a quota whose ``used`` is not the sum of its charges; a missing one is empty.

    ``entries`` of the journal are the newest that moved it; if ``is_explained``, ``used`` lacks
    just them.
    """

    namespace: str
    quota: str
    resource: str
    used: str
    charged: str
    is_explained: bool = field(default=False, repr=False)
    entries: Sequence[JournalLine] = field(default=(), repr=False)


def recount(
    cluster: str, *, namespace: str = "", repair: bool = False, user: str = ""
) -> list[RecountDifference]:
    """Compare every ``used`` of a cluster or a namespace with its charges, and repair it if asked.

    A repair is in the journal, with its user. Each namespace has its own transaction under the
    locks of admission: other namespaces go on, and reservations are counted. Raises
    ``Cluster.DoesNotExist``.
    """
    owner = Cluster.objects.get(name=cluster)
    usage_rows = QuotaUsage.objects.filter(cluster=owner).order_by("namespace")
    if namespace:
        usage_rows = usage_rows.filter(namespace=namespace)
    names = usage_rows.values_list("namespace", flat=True).distinct()
    return [
        difference
        for name in names
        for difference in _recount_namespace(owner.pk, name, repair=repair, user=user)
    ]


@transaction.atomic
def _recount_namespace(
    cluster_id: int, namespace: str, *, repair: bool, user: str
) -> list[RecountDifference]:
    statements().lock_namespace(cluster_id, namespace)
    usage_rows = QuotaUsage.objects.filter(cluster_id=cluster_id, namespace=namespace)
    all_differences = []
    for usage in usage_rows.select_related("quota__namespace__cluster").order_by("quota_id"):
        charged = expected(usage.quota, usage.cluster_id)
        quota_differences = []
        for name in sorted(usage.used.keys() | charged.keys()):
            used, charged_sum = usage.used.get(name, ""), charged.get(name, "")
            # As amounts, not as texts: 1Gi and 1024Mi are equal.
            if not (used and charged_sum) or parse({"a": used}) != parse({"a": charged_sum}):
                quota_differences.append(_difference(usage, name, used, charged_sum))
        if quota_differences and repair:
            settle(usage.quota)
            statements().append([_recount_entry(usage, charged, user)])
        all_differences += quota_differences
    return all_differences


def looks_even(quota: ResourceQuota) -> bool:
    """Whether ``used`` is the sum of the charges, read without a lock: it may seem not to be."""
    usage = QuotaUsage.objects.filter(cluster_id=quota.owner.pk, quota_id=quota.pk).first()
    return usage is None or parse(usage.used) == parse(expected(quota, usage.cluster_id))


def _difference(usage: QuotaUsage, name: str, used: str, charged: str) -> RecountDifference:
    found = led_to(usage.cluster_id, usage.quota_uid, name, used=used, charged=charged)
    return RecountDifference(
        namespace=usage.namespace,
        quota=usage.quota.name,
        resource=name,
        used=used,
        charged=charged,
        is_explained=found.is_explained,
        entries=found.entries,
    )


def _recount_entry(usage: QuotaUsage, charged: dict[str, str], user: str) -> NewEntry:
    quota_place = (usage.cluster_id, stored_uid(usage.quota_uid), usage.namespace)
    both_amounts = (json_text(usage.used), json_text(charged))
    by_user = (LedgerEntry.Cause.RECOUNT.value, user[:LONGEST_NAME])
    return NewEntry(
        *quota_place, "", "", "", LedgerEntry.Action.RECOUNT.value, *both_amounts, *by_user
    )
