"""``apply_manifest`` of any kind: object found or new, taken over, namespace ensured; restore."""

from __future__ import annotations

import difflib
import uuid
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError

from engine.errors import DecodeError
from engine.resource_quota import decode_resource_quota
from policies.ledger.release import set_opening_balance
from policies.models import (
    Cluster,
    KeptTest,
    LimitRange,
    MetadataPolicy,
    Namespace,
    PolicyObject,
    PolicyRevision,
    PriorityClass,
    ResourceQuota,
)
from policies.services.clusters import (
    LIMITED_RESOURCES,
    save_namespace,
    save_priority_class,
    set_limited_resources,
)
from policies.services.kept_tests import save_kept_test
from policies.services.policies import save_policy
from policies.services.write import Action, Saved, in_bulk, lock_used, policy_write
from policies.validators import PlacedError, as_validation_error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from engine.resource_list import ResourceList

KINDS: Final[Mapping[str, type[PolicyObject]]] = {
    "LimitRange": LimitRange,
    "MetadataPolicy": MetadataPolicy,
    "ResourceQuota": ResourceQuota,
}
OF_NAMESPACE: Final[Mapping[str, type[PolicyObject | KeptTest]]] = {
    **KINDS,
    KeptTest.kind: KeptTest,
}
"""The kinds whose objects live in a namespace: policies, and what tests them."""
OF_CLUSTER: Final[Mapping[str, type[Namespace | PriorityClass]]] = {
    "Namespace": Namespace,
    "PriorityClass": PriorityClass,
}
DEFAULT_NAMESPACE: Final = "default"


def apply_manifest(  # noqa: PLR0913 - all by name
    *,
    cluster: Cluster,
    manifest: Mapping[str, Any],
    user: str,
    reason: str = "",
    expected_revision: int | None = None,
    create_namespace: bool = False,
) -> Saved:
    """Create or update what one manifest describes; the same again changes nothing.

    Kinds are LimitRange, MetadataPolicy, ResourceQuota, PolicyTest, Namespace, PriorityClass and
    ResourceQuotaConfiguration (``limitedResources``). A missing namespace is created with
    ``create_namespace``, else refused. ``status.used`` of a new quota becomes its opening balance;
    for a stored quota it is ignored, since the ledger has counted. Raises ``ValidationError`` and
    ``StaleRevisionError``.
    """
    with policy_write(cluster):
        instance = read_object(
            cluster=cluster, manifest=manifest, user=user, create_namespace=create_namespace
        )
        if instance is None:
            entries = manifest.get("limitedResources") or []
            return set_limited_resources(cluster=cluster, entries=entries, user=user, reason=reason)
        is_new = instance.pk is None
        saved = _save_object(
            instance, user=user, reason=reason, expected_revision=expected_revision
        )
        if is_new and isinstance(instance, ResourceQuota) and (used := opening_balance(manifest)):
            set_opening_balance(instance, used)
            instance.uncounted = [name for name in instance.uncounted if name not in used]
            ResourceQuota.objects.filter(pk=instance.pk).update(uncounted=instance.uncounted)
    return saved


def apply_in_namespaces(  # noqa: PLR0913 - all by name
    *,
    cluster: Cluster,
    manifest: Mapping[str, Any],
    namespaces: Collection[str],
    user: str,
    reason: str = "",
    expected_revisions: Mapping[str, int] | None = None,
) -> dict[str, Saved]:
    """Create or update one policy in several namespaces: all of them, or none.

    It is one write of the cluster with a revision for each namespace whose policy changes. No
    lints. Raises ``ValidationError`` and ``StaleRevisionError``.
    """
    expected = expected_revisions or {}
    with policy_write(cluster), in_bulk():
        if manifest.get("kind") == ResourceQuota.kind:
            # In one go, for the order of locks is that of ids and not that of namespaces.
            lock_used(cluster, namespaces)
        return {
            namespace: apply_manifest(
                cluster=cluster,
                manifest={**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}},
                user=user,
                reason=reason,
                expected_revision=expected.get(namespace),
            )
            for namespace in sorted(namespaces)
        }


def read_object(
    *, cluster: Cluster, manifest: Mapping[str, Any], user: str, create_namespace: bool = False
) -> Any:
    """Find the object that a manifest names, or make it, and set its content; saves no object.

    None stands for the cluster's limitedResources. A policy's namespace must exist, unless
    ``create_namespace`` allows to create it. Raises ``ValidationError``.
    """
    kind = manifest.get("kind")
    if kind == LIMITED_RESOURCES:
        return None
    if kind not in (known_kinds := (*OF_NAMESPACE, *OF_CLUSTER)):
        message = f"must be one of: {', '.join(known_kinds)}"
        raise ValidationError({"kind": ValidationError(message, code="unknown_kind")})
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or DEFAULT_NAMESPACE
    instance = find_object(cluster, kind=str(kind), name=str(name), namespace=str(namespace))
    if instance is None:
        owner = None
        if kind in OF_NAMESPACE:
            if create_namespace:
                ensure_namespace(cluster=cluster, name=str(namespace), user=user)
            owner = require_namespace(cluster=cluster, name=str(namespace))
        instance = new_object(cluster, str(kind), owner)
    return take_over(instance, manifest)


def take_over(instance: Any, manifest: Mapping[str, Any]) -> Any:
    """Set an object's content; an unreadable manifest raises ``ValidationError``."""
    try:
        return instance.read_manifest(manifest)
    except DecodeError as error:
        raise instance.decode_error(error) from error


def find_object(cluster: Cluster, *, kind: str, name: str, namespace: str = "") -> Any:
    """Find a stored object by its names, or None."""
    if model_of_cluster := OF_CLUSTER.get(kind):
        return model_of_cluster.objects.filter(cluster=cluster, name=name).first()
    places = OF_NAMESPACE[kind].objects.filter(
        namespace__cluster=cluster, namespace__name=namespace
    )
    return places.filter(name=name).first()


def new_object(cluster: Cluster, kind: str, namespace: Namespace | None) -> Any:
    """An empty, unsaved object; only policies and tests have a ``namespace``."""
    if model_of_cluster := OF_CLUSTER.get(kind):
        return model_of_cluster(cluster=cluster)
    return OF_NAMESPACE[kind](namespace=namespace)


def require_namespace(*, cluster: Cluster, name: str, known: Collection[str] = ()) -> Namespace:
    """Find a namespace; raises ``ValidationError`` where there is none.

    ``known`` are the names that the error may suggest.
    """
    namespace: Namespace | None = Namespace.objects.filter(cluster=cluster, name=name).first()
    if namespace is None:
        raise unknown_namespace(cluster=cluster, name=name, known=known, path="metadata.namespace")
    return namespace


def unknown_namespace(
    *, cluster: Cluster, name: str, known: Collection[str], path: str
) -> ValidationError:
    """The error of a name that no namespace has, at ``path`` of the body."""
    near_names = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean {near_names[0]}? else" if near_names else "correct its name, or"
    message = f'there is no namespace "{name}" in {cluster.name}: {guess} have it created'
    error = PlacedError(message, code="unknown_namespace", path=path, place=("", None, ""))
    return as_validation_error([error])


def ensure_namespace(*, cluster: Cluster, name: str, user: str) -> Namespace:
    """Find a namespace, or create it."""
    namespace: Namespace | None = Namespace.objects.filter(cluster=cluster, name=name).first()
    if namespace is None:
        namespace = Namespace(cluster=cluster, name=name)
        save_namespace(namespace=namespace, user=user, reason="a policy needs it")
    return namespace


def _save_object(instance: Any, *, action: str = "", **author: Any) -> Saved:
    if isinstance(instance, PolicyObject):
        return save_policy(policy=instance, action=action, **author)
    if isinstance(instance, KeptTest):
        return save_kept_test(test=instance, action=action, **author)
    if isinstance(instance, PriorityClass):
        return save_priority_class(priority_class=instance, action=action, **author)
    return save_namespace(namespace=instance, **author)


def opening_balance(manifest: Mapping[str, Any]) -> ResourceList:
    """The used amounts of a quota before it was stored here, if its cluster reported them."""
    reported_status = manifest.get("status")
    has_used = isinstance(reported_status, dict) and reported_status.get("used")
    return decode_resource_quota(manifest).used if has_used else {}


def restore_revision(*, revision: PolicyRevision, user: str, reason: str = "") -> Saved:
    """Restore the object as a revision left it, or, of a deletion, as it was before.

    A deleted object gets its old uid again, so that a restored quota finds its charges.
    """
    manifest = revision.before if revision.action == Action.DELETE else revision.after
    if not manifest or revision.kind not in {*OF_NAMESPACE, "PriorityClass", LIMITED_RESOURCES}:
        message = f"a {revision.kind} cannot be restored from its history"
        raise ValidationError(message, code="not_restorable")
    restore_reason = reason or f"restored from revision {revision.number}"
    cluster = Cluster.objects.filter(name=revision.cluster).first()
    if cluster is None:
        raise ValidationError(f"cluster {revision.cluster} does not exist", code="unknown_cluster")
    with policy_write(cluster):
        # The namespace may have been deleted as well.
        instance = read_object(cluster=cluster, manifest=manifest, user=user, create_namespace=True)
        if instance is None:
            return set_limited_resources(
                cluster=cluster,
                entries=manifest["limitedResources"],
                user=user,
                reason=restore_reason,
                action=Action.RESTORE,
            )
        if instance.pk is None:
            instance.uid = uuid.UUID(revision.uid)
        return _save_object(instance, user=user, reason=restore_reason, action=Action.RESTORE)
