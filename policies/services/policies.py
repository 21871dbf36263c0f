"""``save_policy`` and ``delete_policy`` of a namespace's policies; their rows, quota settled."""

from __future__ import annotations

from policies.ledger.recount import settle
from policies.ledger.release import lock_quotas
from policies.models import PolicyObject, ResourceQuota, ResourceQuotaRow
from policies.services.observed import note_new_names
from policies.services.write import (
    Action,
    Saved,
    check_fresh,
    check_identity,
    is_in_bulk,
    lint_after,
    next_number,
    policy_write,
    record_object,
    stored_version,
)


def save_policy(
    *,
    policy: PolicyObject,
    user: str,
    reason: str = "",
    expected_revision: int | None = None,
    action: str = "",
) -> Saved:
    """Save a policy with its drafted rows.

    Raises ``ValidationError`` (each error placed at its field, row and path) and
    ``StaleRevisionError`` when the stored revision is not the expected one (0: none yet).
    Saving an unchanged policy leaves no revision.
    """
    with policy_write(policy.owner):
        if isinstance(policy, ResourceQuota):
            # Before anything is read: a decision must not charge what is about to be summed up.
            lock_quotas(policy.owner.name, policy.namespace_name)
        stored = stored_version(policy)
        check_fresh(stored, expected_revision)
        check_identity(stored, policy)
        policy.replaces = stored
        # Many at once leave constraints to the database: Django would send a query for each.
        policy.full_clean(validate_constraints=not is_in_bulk())
        before, after = stored.to_manifest() if stored else None, policy.to_manifest()
        revision = None
        if before != after:
            policy.revision = next_number(policy)
            if isinstance(policy, ResourceQuota):
                note_new_names(policy, stored)
            _write_with_rows(policy)
            done = action or (Action.UPDATE if stored else Action.CREATE)
            revision = record_object(
                policy, action=done, before=before, after=after, author=(user, reason)
            )
        policy.forget_drafts()
        lints = lint_after(policy)
    return Saved(instance=policy, revision=revision, lints=lints)


def _write_with_rows(policy: PolicyObject) -> None:
    policy.save()
    for row_set, rows in policy.drafts.items():
        if isinstance(policy, ResourceQuota) and row_set == "rows":
            _write_quota_rows(policy, [row for row in rows if isinstance(row, ResourceQuotaRow)])
            continue
        manager = getattr(policy, row_set)
        manager.all().delete()
        for row in rows:
            setattr(row, manager.field.name, policy)
        manager.bulk_create(rows)
    if isinstance(policy, ResourceQuota):
        settle(policy)


def _write_quota_rows(quota: ResourceQuota, rows: list[ResourceQuotaRow]) -> None:
    """Change the rows of names that stay, so that they keep their ids and their order."""
    kept = {row.resource: row for row in ResourceQuotaRow.objects.filter(quota=quota)}
    wanted = {row.resource: row for row in rows}
    for resource in kept.keys() - wanted.keys():
        kept[resource].delete()
    for resource, row in wanted.items():
        target = kept.get(resource) or ResourceQuotaRow(quota=quota, resource=resource)
        target.hard = row.hard
        target.save()


def delete_policy(
    *, policy: PolicyObject, user: str, reason: str = "", expected_revision: int | None = None
) -> Saved:
    """Delete a policy; its revisions stay, and a quota's charges wait for its restoration."""
    with policy_write(policy.owner):
        if isinstance(policy, ResourceQuota):
            lock_quotas(policy.owner.name, policy.namespace_name)
        stored = stored_version(policy)
        check_fresh(stored, expected_revision)
        before = stored.to_manifest() if stored else None
        revision = record_object(
            policy, action=Action.DELETE, before=before, after=None, author=(user, reason)
        )
        # By a query: deleting the instance would clear its key.
        type(policy).objects.filter(pk=policy.pk).delete()
        lints = lint_after(policy)
    return Saved(instance=policy, revision=revision, lints=lints)
