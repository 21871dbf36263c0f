"""Save, delete recorded Cluster, Namespace, PriorityClass; limitedResources; WebhookCredential."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.utils import timezone

from engine.resource_quota import encode_limited_resource
from policies.models import (
    Charge,
    Cluster,
    KeptTest,
    LimitedResource,
    LimitRange,
    MetadataPolicy,
    Namespace,
    PriorityClass,
    Recorded,
    ResourceQuota,
    WebhookCredential,
)
from policies.services.field_managers import Written, note_written
from policies.services.kept_tests import delete_kept_test
from policies.services.policies import delete_policy
from policies.services.write import (
    Action,
    Saved,
    check_fresh,
    check_identity,
    lock_used,
    next_number,
    policy_write,
    record,
    record_object,
    stored_version,
)
from policies.validators import read_limited_resources

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

LIMITED_RESOURCES = "ResourceQuotaConfiguration"
CONFIGURATION = (LIMITED_RESOURCES, "", "limitedResources")
"""Kind, namespace and name of the list in the history and among the managed objects."""
CREDENTIAL = "WebhookCredential"
SECRET_BYTES = 32
CLUSTER_FIELDS = (
    "description",
    "external_id",
    "unconfirmed_limit",
    "authority",
    "covers_kube_system",
    "failure_policy",
    "portal_namespace",
    "excluded_namespaces",
    "kubernetes_version",
)


def save_cluster(
    *, cluster: Cluster, user: str, reason: str = "", expected_revision: int | None = None
) -> Saved:
    """Save a cluster; its name never changes. Raises as ``save_policy`` does."""
    return _save_recorded(cluster, author=(user, reason), expected_revision=expected_revision)


def set_authority(*, cluster: Cluster, authority: str, user: str, reason: str = "") -> Saved:
    """Set who enforces ranges and quotas; raises ``ValidationError`` for an unknown word."""
    return _set_field(cluster, "authority", authority, author=(user, reason))


def set_failure_policy(
    *, cluster: Cluster, failure_policy: str, user: str, reason: str = ""
) -> Saved:
    """Set what an outage of the portal does; raises ``ValidationError`` for an unknown word."""
    return _set_field(cluster, "failure_policy", failure_policy, author=(user, reason))


def set_excluded_namespaces(
    *, cluster: Cluster, names: Sequence[str], user: str, reason: str = ""
) -> Saved:
    """Set which namespaces the webhooks leave out; raises ``ValidationError`` for other texts."""
    return _set_field(cluster, "excluded_namespaces", sorted(names), author=(user, reason))


def set_kubernetes_version(*, cluster: Cluster, version: str, user: str, reason: str = "") -> Saved:
    """Set the version whose rules hold; raises ``ValidationError`` for one that is not known."""
    return _set_field(cluster, "kubernetes_version", version, author=(user, reason))


def _set_field(cluster: Cluster, field: str, value: Any, *, author: tuple[str, str]) -> Saved:
    with policy_write(cluster):
        # Read again inside the lock: only this field may change.
        stored_cluster = Cluster.objects.get(pk=cluster.pk)
        setattr(stored_cluster, field, value)
        saved = _save_recorded(stored_cluster, author=author, expected_revision=None)
    cluster.refresh_from_db()
    return saved


def save_namespace(
    *, namespace: Namespace, user: str, reason: str = "", expected_revision: int | None = None
) -> Saved:
    """Save a namespace. Raises as ``save_policy`` does."""
    return _save_recorded(namespace, author=(user, reason), expected_revision=expected_revision)


def save_priority_class(
    *,
    priority_class: PriorityClass,
    user: str,
    reason: str = "",
    expected_revision: int | None = None,
    action: str = "",
) -> Saved:
    """Save a priority class. Raises as ``save_policy`` does."""
    author = (user, reason)
    return _save_recorded(
        priority_class, author=author, expected_revision=expected_revision, action=action
    )


def _save_recorded(
    instance: Recorded,
    *,
    author: tuple[str, str],
    expected_revision: int | None,
    action: str = "",
) -> Saved:
    with policy_write(instance.owner):
        stored = stored_version(instance)
        check_fresh(stored, expected_revision)
        check_identity(stored, instance)
        instance.full_clean()
        before, after = stored.to_manifest() if stored else None, instance.to_manifest()
        revision = None
        if before != after:
            instance.revision = next_number(instance)
            if isinstance(instance, Cluster) and instance.pk:
                # Not all fields: other writers move ``policy_revision``.
                instance.save(update_fields=[*CLUSTER_FIELDS, "revision", "updated"])
            else:
                instance.save()
            done_action = action or (Action.UPDATE if stored else Action.CREATE)
            revision = record_object(
                instance, action=done_action, before=before, after=after, author=author
            )
    return Saved(instance=instance, revision=revision)


def delete_priority_class(
    *,
    priority_class: PriorityClass,
    user: str,
    reason: str = "",
    expected_revision: int | None = None,
) -> Saved:
    """Delete a class; quotas may go on naming it. Raises ``StaleRevisionError``."""
    author = (user, reason)
    return _delete_recorded(priority_class, author=author, expected_revision=expected_revision)


def _delete_recorded(
    instance: Recorded, *, author: tuple[str, str], expected_revision: int | None = None
) -> Saved:
    with policy_write(instance.owner):
        if expected_revision is not None:
            check_fresh(stored_version(instance), expected_revision)
        revision = record_object(
            instance,
            action=Action.DELETE,
            before=instance.to_manifest(),
            after=None,
            author=author,
        )
        instance.delete()
    return Saved(instance=instance, revision=revision)


def count_dependents(instance: Cluster | Namespace) -> dict[str, int]:
    """Count what would be deleted together with a cluster or a namespace.

    Keys are the API's plurals. History and decisions stay, so they are not counted.
    """
    is_cluster = isinstance(instance, Cluster)
    of_policies = {"namespace__cluster" if is_cluster else "namespace": instance}
    counts_of_policies = {
        "limitranges": LimitRange.objects.filter(**of_policies).count(),
        "metadatapolicies": MetadataPolicy.objects.filter(**of_policies).count(),
        "resourcequotas": ResourceQuota.objects.filter(**of_policies).count(),
        "tests": KeptTest.objects.filter(**of_policies).count(),
    }
    if not is_cluster:
        return counts_of_policies
    of_cluster: tuple[tuple[str, Any], ...] = (
        ("namespaces", Namespace),
        ("priorityclasses", PriorityClass),
        ("limitedresources", LimitedResource),
        ("credentials", WebhookCredential),
        ("charges", Charge),
    )
    of_whole = {name: model.objects.filter(cluster=instance).count() for name, model in of_cluster}
    return {**counts_of_policies, **of_whole}


def delete_namespace(*, namespace: Namespace, user: str, reason: str = "") -> Saved:
    """Delete a namespace with its policies and tests, each with a revision of its own."""
    with policy_write(namespace.cluster):
        # All locks first: the deletions would take them in the order of the policies.
        lock_used(namespace.cluster, [namespace.name])
        for policy_model in (LimitRange, MetadataPolicy, ResourceQuota):
            for policy in policy_model.objects.filter(namespace=namespace).order_by("id"):
                delete_policy(policy=policy, user=user, reason=reason)
        for test in KeptTest.objects.filter(namespace=namespace).order_by("id"):
            delete_kept_test(test=test, user=user, reason=reason)
        return _delete_recorded(namespace, author=(user, reason))


def delete_cluster(*, cluster: Cluster, user: str, reason: str = "") -> Saved:
    """Delete a cluster with everything it has, whatever rules of approval say; history stays."""
    with policy_write(cluster, is_guarded=False):
        lock_used(cluster)
        for namespace in Namespace.objects.filter(cluster=cluster).order_by("id"):
            delete_namespace(namespace=namespace, user=user, reason=reason)
        for priority_class in PriorityClass.objects.filter(cluster=cluster).order_by("id"):
            _delete_recorded(priority_class, author=(user, reason))
        # On record, or a later cluster of this name would be taken to have them from its start.
        set_limited_resources(cluster=cluster, entries=[], user=user, reason=reason)
        # Deleted quotas leave their charges, which would wait for a restoration.
        Charge.objects.filter(cluster=cluster).delete()
        return _delete_recorded(cluster, author=(user, reason))


def set_limited_resources(
    *,
    cluster: Cluster,
    entries: Sequence[Any],
    user: str,
    reason: str = "",
    action: str = Action.UPDATE,
) -> Saved:
    """Set the cluster's ``limitedResources``, in order."""
    with policy_write(cluster):
        new_entries = _read_entries(cluster, entries)
        before, after = limited_resources_manifests(cluster, entries)
        revision = None
        if before != after:
            # The whole list: entries have no identity beside their position.
            LimitedResource.objects.filter(cluster=cluster).delete()
            LimitedResource.objects.bulk_create(new_entries)
            revision_fields = {
                "cluster": cluster.name,
                "namespace": "",
                "kind": LIMITED_RESOURCES,
                "name": "limitedResources",
                "action": action,
                "before": before,
                "after": after,
            }
            revision = record(cluster, revision_fields, author=(user, reason))
            written = Written(
                key=CONFIGURATION, before=before, after=after, revision=revision.number
            )
            note_written(cluster, [written], user)
    return Saved(instance=cluster, revision=revision)


def limited_resources_manifests(
    cluster: Cluster, entries: Sequence[Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The quota plugin's configuration as stored, and with other entries."""
    stored = LimitedResource.objects.filter(cluster=cluster)
    return (
        _limited_resources_manifest(stored),
        _limited_resources_manifest(_read_entries(cluster, list(entries))),
    )


def _limited_resources_manifest(limited_resources: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": LIMITED_RESOURCES,
        "limitedResources": [row.to_manifest() for row in limited_resources],
    }


def _read_entries(cluster: Cluster, entries: Sequence[Any]) -> list[LimitedResource]:
    return [
        LimitedResource(
            cluster=cluster,
            position=position,
            api_group=entry.api_group,
            resource=entry.resource,
            match_contains=list(entry.match_contains),
            # As it was read and not as it was sent: null among values is an empty text.
            match_scopes=encode_limited_resource(entry).get("matchScopes", []),
        )
        for position, entry in enumerate(read_limited_resources(entries))
    ]


def issue_webhook_credential(
    *,
    cluster: Cluster,
    label: str,
    user: str,
    expires: dt.datetime | None = None,
    reason: str = "",
) -> tuple[WebhookCredential, str]:
    """Issue a credential; returns its secret this once, since only a keyed digest is stored."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    if expires is not None and expires <= timezone.now():
        raise ValidationError({"expires": ValidationError("must be in the future", code="past")})
    with policy_write(cluster):
        digest = WebhookCredential.digest_of(secret)
        credential = WebhookCredential(cluster=cluster, label=label, digest=digest, expires=expires)
        credential.full_clean()
        credential.save()
        _record_credential(credential, Action.ISSUE, author=(user, reason))
    return credential, secret


def revoke_webhook_credential(
    *, credential: WebhookCredential, user: str, reason: str = ""
) -> WebhookCredential:
    """Revoke a credential; revoking it again changes nothing."""
    # Like a policy write: snapshots read credentials again only after a new revision.
    with policy_write(credential.cluster):
        credential.refresh_from_db()
        if credential.revoked is None:
            credential.revoked = timezone.now()
            credential.save(update_fields=["revoked"])
            _record_credential(credential, Action.REVOKE, author=(user, reason))
    return credential


def _record_credential(
    credential: WebhookCredential, action: str, *, author: tuple[str, str]
) -> None:
    credential_times = {"expires": credential.expires, "revoked": credential.revoked}
    credential_after = {
        "kind": CREDENTIAL,
        "metadata": {"name": credential.label},
        "spec": {name: moment.isoformat() for name, moment in credential_times.items() if moment},
    }
    revision_fields = {
        "cluster": credential.cluster.name,
        "namespace": "",
        "kind": CREDENTIAL,
        "name": credential.label,
        "action": action,
        "after": credential_after,
    }
    record(credential.cluster, revision_fields, author=author)
