"""``carry_out`` a SetPlan: all of it in one transaction, or nothing."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from policies import services, snapshot
from policies.object_sets.deletions import delete
from policies.plurals import counted

if TYPE_CHECKING:
    from policies.models import Cluster
    from policies.object_sets.plan import SetPlan
    from policies.services.field_managers import Key


CLASS_KIND: Final = "NamespaceClass"


class OutdatedPlanError(Exception):
    """Policies of the cluster were written since the plan was made: make another one."""


def carry_out(cluster: Cluster, planned: SetPlan, *, user: str, reason: str = "") -> None:
    """Store a plan that nothing blocks; raises OutdatedPlanError.

    The set becomes the manager of all fields that it lists.
    """
    options = planned.options
    reason = _with_takeovers(planned, reason)
    writer = services.FieldWriter(options.manager, options.commit)
    of_classes = services.classes_written() if planned.classes else nullcontext()
    with of_classes, services.policy_write(cluster):
        # Planned and checked before the lock: other writers wait for the statements alone.
        if snapshot.revision(cluster.name) != planned.number:
            raise OutdatedPlanError
        # All locks before the first write, in one order, as decisions take them.
        services.lock_used(cluster, _namespaces_of_ledger(planned))
        if options.create_namespaces:
            _make_namespaces(cluster, planned, user=user)
        with services.managed_by(writer), services.in_bulk():
            _store(cluster, planned, user=user, reason=reason)
            revisions = {
                preview.key: preview.instance.revision
                for preview, _ in planned.previews
                if preview.instance is not None
            }
            claims = [
                (key, wanted, revisions.get(key, 0)) for key, wanted in planned.wanted.items()
            ]
            if services.claim(cluster, writer, claims):
                # Another plan that was made meanwhile must not count on the old managers.
                services.changed_write(cluster)
            _store_classes(planned, user=user, reason=reason)


def _store_classes(planned: SetPlan, *, user: str, reason: str) -> None:
    versions = {each.key[2]: each.revision for each in planned.objects if each.key[0] == CLASS_KIND}
    for manifest in planned.classes:
        try:
            services.save_class(
                manifest=manifest,
                user=user,
                reason=reason,
                expected_version=versions[manifest["metadata"]["name"]],
                confirmed=planned.options.confirmed,
            )
        except services.StaleRevisionError as error:
            raise OutdatedPlanError from error


def _namespaces_of_ledger(planned: SetPlan) -> set[str]:
    """The namespaces whose quotas are written, or go with their namespace."""
    written = (each for each in planned.objects if each.action != "unchanged")
    keys = (each.key for each in written)
    return {
        namespace or name
        for kind, namespace, name in keys
        if kind in ("ResourceQuota", "Namespace")
    }


def _with_takeovers(planned: SetPlan, reason: str) -> str:
    """The reason for the record, which says whose fields are taken over by force."""
    conflicts = [conflict for each in planned.objects for conflict in each.conflicts]
    if not conflicts:
        return reason
    owners = ", ".join(sorted({conflict.manager.manager for conflict in conflicts}))
    count = counted(len(conflicts), "fields")
    return f"{reason}; takes over {count} of {owners}".removeprefix("; ")


def _make_namespaces(cluster: Cluster, planned: SetPlan, *, user: str) -> None:
    """Make the namespaces that no document lists; they are not the set's, nor ever pruned."""
    listed = {key[2] for key in planned.wanted if key[0] == "Namespace"}
    needed = {key[1] for key in planned.wanted} - listed - {""}
    for name in sorted(needed):
        services.ensure_namespace(cluster=cluster, name=name, user=user)


def _store(cluster: Cluster, planned: SetPlan, *, user: str, reason: str) -> None:
    changed = [pair for pair in planned.previews if pair[0].before != pair[0].after]
    services.store_previews(cluster=cluster, previews=changed, user=user, reason=reason)
    configuration = planned.wanted.get(services.CONFIGURATION)
    if configuration is not None:
        services.set_limited_resources(
            cluster=cluster, entries=configuration["limitedResources"], user=user, reason=reason
        )
    delete(_stored_deletions(cluster, planned), user=user, reason=reason)


def _stored_deletions(cluster: Cluster, planned: SetPlan) -> list[object]:
    """The stored objects to delete, in the plan's order."""
    keys: list[Key] = [each.key for each in planned.having("delete")]
    stored = services.stored_by_key(cluster, keys)
    return [stored[key] for key in keys]
