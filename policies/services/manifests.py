"""Apply a manifest: find or create its object, save it; restore an old revision."""

from __future__ import annotations

import difflib
import uuid
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError

from engine.errors import DecodeError
from engine.resource_quota import decode_resource_quota
from policies import ledger
from policies.models import (
    Cluster,
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
from policies.services.policies import save_policy
from policies.services.write import Action, Saved, policy_write
from policies.validators import PlacedError, as_validation_error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

KINDS: Final[Mapping[str, type[PolicyObject]]] = {
    "LimitRange": LimitRange,
    "MetadataPolicy": MetadataPolicy,
    "ResourceQuota": ResourceQuota,
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

    Knows LimitRange, MetadataPolicy, ResourceQuota, Namespace, PriorityClass and
    ResourceQuotaConfiguration (``limitedResources``). A missing namespace is
    made with ``create_namespace``, else refused. ``status.used`` of a quota that is new here
    becomes its opening balance; later the ledger alone knows better.
    Raises ``ValidationError`` and ``StaleRevisionError``.
    """
    with policy_write(cluster):
        instance = read_object(
            cluster=cluster, manifest=manifest, user=user, create_namespace=create_namespace
        )
        if instance is None:
            entries = manifest.get("limitedResources") or []
            return set_limited_resources(cluster=cluster, entries=entries, user=user, reason=reason)
        is_new = instance.pk is None
        saved = _save(
            instance, user=user, reason=reason, expected_revision=expected_revision, action=""
        )
        if is_new and isinstance(instance, ResourceQuota):
            _open_balance(instance, manifest)
    return saved


def read_object(
    *, cluster: Cluster, manifest: Mapping[str, Any], user: str, create_namespace: bool = False
) -> Any:
    """Find what a manifest names, or make it anew, and take over its content; saves nothing.

    None stands for the cluster's limitedResources. Its namespace has to be there, unless it may be
    made. Raises ``ValidationError``.
    """
    kind = manifest.get("kind")
    if kind == LIMITED_RESOURCES:
        return None
    if kind not in {*KINDS, "Namespace", "PriorityClass"}:
        message = f"must be one of: {', '.join((*KINDS, 'Namespace', 'PriorityClass'))}"
        raise ValidationError({"kind": ValidationError(message, code="unknown_kind")})
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or DEFAULT_NAMESPACE
    instance = find_object(cluster, kind=str(kind), name=str(name), namespace=str(namespace))
    if instance is None:
        if kind in KINDS and create_namespace:
            ensure_namespace(cluster=cluster, name=str(namespace), user=user)
        instance = _new(cluster, str(kind), str(namespace))
    return take_over(instance, manifest)


def take_over(instance: Any, manifest: Mapping[str, Any]) -> Any:
    """Have an object read its manifest; one that cannot be read raises ``ValidationError``."""
    try:
        return instance.read_manifest(manifest)
    except DecodeError as error:
        raise instance.decode_error(error) from error


def find_object(cluster: Cluster, *, kind: str, name: str, namespace: str = "") -> Any:
    """Find a stored object by its names, or None."""
    if kind == "Namespace":
        return Namespace.objects.filter(cluster=cluster, name=name).first()
    if kind == "PriorityClass":
        return PriorityClass.objects.filter(cluster=cluster, name=name).first()
    model = KINDS[kind]
    return model.objects.filter(
        namespace__cluster=cluster, namespace__name=namespace, name=name
    ).first()


def _new(cluster: Cluster, kind: str, namespace: str) -> Any:
    if kind == "Namespace":
        return Namespace(cluster=cluster)
    if kind == "PriorityClass":
        return PriorityClass(cluster=cluster)
    return KINDS[kind](namespace=require_namespace(cluster=cluster, name=namespace))


def require_namespace(*, cluster: Cluster, name: str, known: Collection[str] = ()) -> Namespace:
    """Find a namespace; raises ``ValidationError`` where there is none: nobody asked to make it.

    ``known`` are the names that the error may show.
    """
    found: Namespace | None = Namespace.objects.filter(cluster=cluster, name=name).first()
    if found is None:
        near = difflib.get_close_matches(name, known, n=1)
        guess = f"did you mean {near[0]}? else" if near else "correct its name, or"
        message = f'there is no namespace "{name}" in {cluster.name}: {guess} ask for it to be made'
        place = PlacedError(
            message, code="unknown_namespace", path="metadata.namespace", place=("", None, "")
        )
        raise as_validation_error([place])
    return found


def ensure_namespace(*, cluster: Cluster, name: str, user: str) -> Namespace:
    """Find a namespace, or make it."""
    found: Namespace | None = Namespace.objects.filter(cluster=cluster, name=name).first()
    if found is not None:
        return found
    namespace = Namespace(cluster=cluster, name=name)
    save_namespace(namespace=namespace, user=user, reason="a policy needs it")
    return namespace


def _save(
    instance: Any, *, user: str, reason: str, expected_revision: int | None, action: str
) -> Saved:
    if isinstance(instance, PolicyObject):
        return save_policy(
            policy=instance,
            user=user,
            reason=reason,
            expected_revision=expected_revision,
            action=action,
        )
    if isinstance(instance, PriorityClass):
        return save_priority_class(
            priority_class=instance,
            user=user,
            reason=reason,
            expected_revision=expected_revision,
            action=action,
        )
    return save_namespace(
        namespace=instance, user=user, reason=reason, expected_revision=expected_revision
    )


def _open_balance(quota: ResourceQuota, manifest: Mapping[str, Any]) -> None:
    status = manifest.get("status")
    if isinstance(status, dict) and status.get("used"):
        used = decode_resource_quota(manifest).used
        ledger.set_opening_balance(quota, used)
        quota.uncounted = [name for name in quota.uncounted if name not in used]
        ResourceQuota.objects.filter(pk=quota.pk).update(uncounted=quota.uncounted)


def restore_revision(*, revision: PolicyRevision, user: str, reason: str = "") -> Saved:
    """Bring back what a revision left, or, if it deleted the object, what it deleted.

    A deleted object returns under its old uid; a quota takes up its charges again.
    """
    manifest = revision.before if revision.action == Action.DELETE else revision.after
    if not manifest or revision.kind not in {*KINDS, "PriorityClass", LIMITED_RESOURCES}:
        message = f"a {revision.kind} is not restored from its history"
        raise ValidationError(message, code="not_restorable")
    text = reason or f"restored from revision {revision.number}"
    cluster = Cluster.objects.filter(name=revision.cluster).first()
    if cluster is None:
        raise ValidationError(f"cluster {revision.cluster} does not exist", code="unknown_cluster")
    with policy_write(cluster):
        instance = read_object(cluster=cluster, manifest=manifest, user=user, create_namespace=True)
        if instance is None:
            return set_limited_resources(
                cluster=cluster,
                entries=manifest["limitedResources"],
                user=user,
                reason=text,
                action=Action.RESTORE,
            )
        if instance.pk is None:
            instance.uid = uuid.UUID(revision.uid)
        return _save(
            instance, user=user, reason=text, expected_revision=None, action=Action.RESTORE
        )
