"""What a portal under test has stored: objects of every kind, decisions, people of three roles.

Run as a separate process (``python -m …api_world``) with the settings of the portal; prints the
credential of the cluster.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

CLUSTER: Final = "prod"
NAMESPACE: Final = "team"
PASSWORD: Final = "correct horse battery"
ROLES: Final = ("viewer", "editor", "admin")
_POLICY: Final = "policy.gatehouse.dev/v1alpha1"
_SCOPE: Final = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
_RULE: Final = {
    "policyPredicate": {"labelSelector": {"matchLabels": {"app": "web"}}},
    "policyAction": {"updatedLabels": {"team": "a"}},
}


def manifests() -> list[dict[str, Any]]:
    """Objects with every field that people write, some with the fewest possible."""
    limits = [
        {"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "500m"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "10Gi"}},
    ]
    scoped = {"hard": {"pods": "9"}, "scopeSelector": {"matchExpressions": [_SCOPE]}}
    labels = {"labels": {"tier": "front"}, "annotations": {"note": "a note"}}
    return [
        _object("v1", "LimitRange", "limits", {"limits": limits}, **labels),
        _object("v1", "LimitRange", "empty", {"limits": []}),
        _object(_POLICY, "MetadataPolicy", "labels", {"rules": [_RULE], "strict": True}, **labels),
        _object("v1", "ResourceQuota", "pods", {"hard": {"pods": "5", "limits.cpu": "4"}}),
        _object("v1", "ResourceQuota", "high", scoped, **labels),
        {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
    ]


def _object(
    version: str, kind: str, name: str, spec: dict[str, Any], **metadata: Any
) -> dict[str, Any]:
    named = {"name": name, "namespace": NAMESPACE, **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": named, "spec": spec}


def main() -> None:
    """Migrate and store everything; print the secret."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django  # noqa: PLC0415 - the settings' name comes first

    django.setup()
    from django.contrib.auth import get_user_model  # noqa: PLC0415 - needs settings
    from django.core.management import call_command  # noqa: PLC0415 - the same

    from policies import services  # noqa: PLC0415 - the same
    from policies.models import Cluster, RoleBinding  # noqa: PLC0415 - the same

    call_command("migrate", interactive=False, verbosity=0)
    for role in ROLES:
        user = get_user_model().objects.create_user(role, password=PASSWORD)
        binding = RoleBinding(user=user, role=role)
        services.bind_role(binding=binding, author=user)
    for name in (CLUSTER, "spare"):
        cluster = services.save_cluster(cluster=Cluster(name=name), user="root").instance
        for manifest in manifests():
            services.apply_manifest(
                cluster=cluster, manifest=manifest, user="root", create_namespace=True
            )
        entries = [{"resource": "pods", "matchScopes": [_SCOPE]}]
        services.set_limited_resources(cluster=cluster, entries=entries, user="root")
        _, secret = services.issue_webhook_credential(cluster=cluster, label="hook", user="root")
        if name == CLUSTER:
            sys.stdout.write(secret)


if __name__ == "__main__":
    main()
