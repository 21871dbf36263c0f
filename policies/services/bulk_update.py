"""Save previewed changes of many objects in few statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.models import LimitRange, MetadataPolicy, PolicyObject
from policies.services.bulk_create import New, owners_of, store_new
from policies.services.manifests import apply_manifest, ensure_namespace
from policies.services.write import in_bulk, last_numbers, policy_write, put_all_on_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db import models

    from policies.models import Cluster
    from policies.services.preview import Preview

    Manifest = Mapping[str, Any]


def store_previews(
    *,
    cluster: Cluster,
    previews: Sequence[tuple[Preview, Manifest]],
    user: str,
    reason: str = "",
) -> None:
    """Store each previewed object with its manifest; what does not change is left alone.

    Namespaces that are not there are made. Revisions and opening balances are those of
    ``apply_manifest``, the checks were those of ``preview_many``. Nothing may have been written
    since (compare ``snapshot.revision`` inside ``policy_write``). Raises ``ValidationError``; no
    lints.
    """
    author = (user, reason)
    with policy_write(cluster), in_bulk():
        news = [
            New(each.key, each.instance, manifest, each.after or {})
            for each, manifest in previews
            if each.before is None
        ]
        # Namespaces first: a policy is stored with the key of its own.
        store_new(cluster, [new for new in news if not new.key[1]], author=author)
        policies = [new for new in news if new.key[1]]
        _link(cluster, policies, user=user)
        store_new(cluster, policies, author=author)
        changed = [one for one in previews if one[0].before and one[0].before != one[0].after]
        _change([each for each, _ in changed if _is_plain(each)], author=author)
        for each, manifest in changed:
            if not _is_plain(each):
                apply_manifest(cluster=cluster, manifest=manifest, user=user, reason=reason)


def _link(cluster: Cluster, news: Sequence[New], *, user: str) -> None:
    """Give each policy the namespace as it is stored by now."""
    owners = owners_of(cluster, [new.key for new in news])
    for new in news:
        name = new.key[1]
        if name not in owners:
            owners[name] = ensure_namespace(cluster=cluster, name=name, user=user)
        new.instance.namespace = owners[name]


def _is_plain(preview: Preview) -> bool:
    """Whether nothing hangs on it but its rows: no ledger, nothing of a whole cluster."""
    return isinstance(preview.instance, LimitRange | MetadataPolicy)


def _change(previews: Sequence[Preview], *, author: tuple[str, str]) -> None:
    if not previews:
        return
    policies: list[Any] = [each.instance for each in previews]
    numbers = last_numbers(policies[0].owner, [each.key for each in previews])
    for each, policy in zip(previews, policies, strict=True):
        policy.revision = numbers.get(each.key, 0) + 1
    for model in (LimitRange, MetadataPolicy):
        _write([policy for policy in policies if isinstance(policy, model)])
    afters, befores = (
        [each.after or {} for each in previews],
        [each.before or {} for each in previews],
    )
    put_all_on_record(policies, afters, author, befores=befores)


def _write(policies: Sequence[PolicyObject]) -> None:
    """Save objects of one model with the drafted rows in place of their own."""
    for policy in policies:
        policy.save()
    for row_set in policies[0].row_sets if policies else ():
        field = getattr(policies[0], row_set).field
        rows: list[models.Model] = []
        for policy in policies:
            for row in policy.drafts.get(row_set, ()):
                setattr(row, field.name, policy)
                rows.append(row)
        manager = field.model._default_manager  # noqa: SLF001 - Django's own API
        manager.filter(**{f"{field.name}__in": policies}).delete()
        manager.bulk_create(rows)
    for policy in policies:
        policy.forget_drafts()
