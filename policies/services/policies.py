"""``save_policy``, ``delete_policy``: drafted rows written, quota rows kept, quota settled."""

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
        stored_policy = stored_version(policy)
        check_fresh(stored_policy, expected_revision)
        check_identity(stored_policy, policy)
        policy.replaces = stored_policy
        # Many at once leave constraints to the database: Django would send a query for each.
        policy.full_clean(validate_constraints=not is_in_bulk())
        before, after = stored_policy.to_manifest() if stored_policy else None, policy.to_manifest()
        revision = None
        if before != after:
            policy.revision = next_number(policy)
            if isinstance(policy, ResourceQuota):
                note_new_names(policy, stored_policy)
            _write_with_rows(policy)
            policy_action = action or (Action.UPDATE if stored_policy else Action.CREATE)
            revision = record_object(
                policy, action=policy_action, before=before, after=after, author=(user, reason)
            )
        policy.forget_drafts()
        lints = lint_after(policy)
    return Saved(instance=policy, revision=revision, lints=lints)


def _write_with_rows(policy: PolicyObject) -> None:
    policy.save()
    for row_set, drafted in policy.drafts.items():
        if isinstance(policy, ResourceQuota) and row_set == "rows":
            _write_quota_rows(policy, [row for row in drafted if isinstance(row, ResourceQuotaRow)])
            continue
        row_manager = getattr(policy, row_set)
        row_manager.all().delete()
        for row in drafted:
            setattr(row, row_manager.field.name, policy)
        row_manager.bulk_create(drafted)
    if isinstance(policy, ResourceQuota):
        settle(policy)


def _write_quota_rows(quota: ResourceQuota, new_rows: list[ResourceQuotaRow]) -> None:
    """Change the rows of names that stay, so that they keep their ids and their order."""
    kept_rows = {row.resource: row for row in ResourceQuotaRow.objects.filter(quota=quota)}
    wanted_rows = {row.resource: row for row in new_rows}
    for resource in kept_rows.keys() - wanted_rows.keys():
        kept_rows[resource].delete()
    for resource, row in wanted_rows.items():
        quota_row = kept_rows.get(resource) or ResourceQuotaRow(quota=quota, resource=resource)
        quota_row.hard = row.hard
        quota_row.save()


def delete_policy(
    *, policy: PolicyObject, user: str, reason: str = "", expected_revision: int | None = None
) -> Saved:
    """Delete a policy; its revisions stay, and a quota's charges wait for its restoration."""
    with policy_write(policy.owner):
        if isinstance(policy, ResourceQuota):
            lock_quotas(policy.owner.name, policy.namespace_name)
        stored_policy = stored_version(policy)
        check_fresh(stored_policy, expected_revision)
        before = stored_policy.to_manifest() if stored_policy else None
        revision = record_object(
            policy, action=Action.DELETE, before=before, after=None, author=(user, reason)
        )
        # By a query: deleting the instance would clear its key.
        type(policy).objects.filter(pk=policy.pk).delete()
        lints = lint_after(policy)
    return Saved(instance=policy, revision=revision, lints=lints)
