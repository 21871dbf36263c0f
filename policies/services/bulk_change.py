"""``change_many`` stored policies in few statements: rows, quotas' accounts, revisions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils import timezone

from policies.fields import QuantityValue
from policies.ledger.recount import settle_many
from policies.models import KeptTest, PolicyObject, ResourceQuota, ResourceQuotaRow
from policies.services.bulk_create import drafted_rows
from policies.services.observed import names_to_count
from policies.services.write import last_numbers, lock_used, record_objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.models import Cluster
    from policies.services.write import Key

MOST_UPDATES: Final = 50
"""So many statements that count revisions are less work than writing all columns."""


class Change(NamedTuple):
    """A checked policy with drafted rows, the stored one that it replaces, and both manifests."""

    key: Key
    stored: Any
    instance: Any
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def change_many(cluster: Cluster, changes: Sequence[Change], *, author: tuple[str, str]) -> None:
    """Store changed policies as ``save_policy`` does, inside ``policy_write``."""
    if not changes:
        return
    quotas = [change for change in changes if isinstance(change.instance, ResourceQuota)]
    if quotas:
        # Before anything is read: a decision must not charge what is about to be summed up.
        lock_used(cluster, {change.key[1] for change in quotas})
        _note_uncounted(cluster, quotas)
    last_number_of = last_numbers(cluster, [change.key for change in changes])
    by_model: dict[type[PolicyObject | KeptTest], list[Change]] = defaultdict(list)
    for change in changes:
        change.instance.revision = last_number_of.get(change.key, 0) + 1
        by_model[type(change.instance)].append(change)
    for model, of_model in by_model.items():
        _save_own_columns(model, of_model)
        if issubclass(model, PolicyObject):
            _save_rows([change.instance for change in of_model])
    settle_many(cluster.pk, [change.instance for change in quotas])
    for change in changes:
        if isinstance(change.instance, PolicyObject):
            change.instance.forget_drafts()
    record_objects(
        [change.instance for change in changes],
        [change.after or {} for change in changes],
        author,
        befores=[change.before or {} for change in changes],
    )


def _note_uncounted(cluster: Cluster, quotas: Sequence[Change]) -> None:
    """Mark the new names whose used amount nobody reported, as ``note_new_names`` does for one."""
    names_of = {
        change.key: (
            {row.resource for row in change.stored.rows_of("rows")},
            {row.resource for row in change.instance.rows_of("rows")},
        )
        for change in quotas
    }
    new_names = {name for before, after in names_of.values() for name in after - before}
    waiting = set(names_to_count(cluster, new_names))
    for change in quotas:
        before, after = names_of[change.key]
        yet_to_count = after & set(change.stored.uncounted)
        change.instance.uncounted = sorted(yet_to_count | (after - before) & waiting)


def _save_own_columns(model: Any, changes: Sequence[Change]) -> None:
    """Save the objects of one model without their rows, in few statements."""
    fixed = {"id", "uid", "created", "namespace", "name"}
    fields = [field.name for field in model._meta.concrete_fields if field.name not in fixed]  # noqa: SLF001 - Django's own API
    content = set(fields) - {"revision", "updated"}
    counted: dict[int, list[Any]] = defaultdict(list)
    whole = []
    for change in changes:
        stored, instance = change.stored, change.instance
        if all(getattr(stored, name) == getattr(instance, name) for name in content):
            counted[instance.revision].append(instance)
        else:
            whole.append(instance)
    # Mostly only rows change, and policies of equal histories are counted together.
    for revision, instances in sorted(counted.items()):
        if len(counted) > MOST_UPDATES:
            whole += instances
            continue
        ids = [instance.pk for instance in instances]
        model.objects.filter(pk__in=ids).update(revision=revision, updated=timezone.now())
    # All rows exist: an insert that becomes an update writes them in a few statements.
    model.objects.bulk_create(
        whole, update_conflicts=True, unique_fields=["id"], update_fields=fields, batch_size=500
    )


def _save_rows(policies: Sequence[PolicyObject]) -> None:
    """Save the drafted rows of objects of one model in place of their own."""
    drafted = [row for policy in policies for row in drafted_rows(policy)]
    for row_set in policies[0].row_sets:
        row_field = getattr(policies[0], row_set).field
        rows: list[Any] = [row for row in drafted if isinstance(row, row_field.model)]
        row_manager = row_field.model._default_manager  # noqa: SLF001 - Django's own API
        if row_field.model is ResourceQuotaRow:
            _write_hard(policies, rows)
            continue
        row_manager.filter(**{f"{row_field.name}__in": policies}).delete()
        row_manager.bulk_create(rows)


def _write_hard(quotas: Sequence[Any], drafted: Sequence[ResourceQuotaRow]) -> None:
    """Change the rows of names that stay, so that they keep their ids and their order."""
    wanted = {(row.quota_id, row.resource): row for row in drafted}
    stored = {
        (row.quota_id, row.resource): row
        for row in ResourceQuotaRow.objects.filter(quota__in=quotas)
    }
    gone = [row.pk for key, row in stored.items() if key not in wanted]
    ResourceQuotaRow.objects.filter(pk__in=gone).delete()
    changed: dict[str, list[int]] = defaultdict(list)
    for key, row in stored.items():
        if key in wanted and str(row.hard) != str(wanted[key].hard):
            changed[str(wanted[key].hard)].append(row.pk)
    # By amount: quotas that are changed together mostly get the same.
    for hard, ids in changed.items():
        ResourceQuotaRow.objects.filter(pk__in=ids).update(hard=QuantityValue(hard))
    ResourceQuotaRow.objects.bulk_create(row for key, row in wanted.items() if key not in stored)
