"""``take_back`` the writes of one cluster: each object as it was before its revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.services.changes.parts import delete_stored
from policies.services.manifests import restore_revision
from policies.services.preview import preview_many, store_previews, stored_by_key
from policies.services.write import in_bulk, lock_used

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.models import Cluster, PolicyRevision


def take_back(
    cluster: Cluster, revisions: Sequence[PolicyRevision], *, user: str, reason: str = ""
) -> None:
    """Restore what some revisions of a cluster replaced, inside ``policy_write``.

    They must be the last ones of their objects. Raises ``ValidationError`` where an object may not
    be stored any more.
    """
    if not revisions:
        return
    reason = reason or f"undone: {revisions[0].reason}"
    keys = [(each.kind, each.namespace, each.name) for each in revisions]
    lock_used(cluster, {namespace for _, namespace, _ in keys})
    stored = stored_by_key(cluster, keys)
    changed = [each.before for each in revisions if each.before and each.after]
    previews = preview_many(cluster=cluster, manifests=changed)
    for preview in previews:
        if preview.error is not None:
            raise preview.error
    store_previews(
        cluster=cluster,
        previews=list(zip(previews, changed, strict=True)),
        user=user,
        reason=reason,
    )
    with in_bulk():
        for key, each in zip(keys, revisions, strict=True):
            if each.before is None:
                delete_stored(stored[key], user=user, reason=reason)
            elif each.after is None:
                restore_revision(revision=each, user=user, reason=reason)
