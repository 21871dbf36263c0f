"""Manifests to install: Namespaces, ServiceAccount, Roles and bindings, token Secret, valid key.

An administrator of the cluster applies them, in this order. The account that they create is the
portal's, with no more permissions than it needs.
"""

from __future__ import annotations

import dataclasses
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from policies.db.clock import read_clock
from policies.models import WebhookCredential
from policies.validators import CANARY_NAMESPACE
from sync.connect.permissions import CONFIGURATION, Grant, manifest_grants
from sync.installation.configurations import WebhookClientConfig, differences, key_in, webhooks
from sync.installation.custom_resource import metadata_policy_definition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policies.models import Cluster
    from sync.client import Client


__all__ = [
    "WebhookClientConfig",
    "differences",
    "key_in",
    "manifests",
    "token_secret",
    "webhooks",
]

ACCOUNT: Final = "gatehouse"
TOKEN_SECRET: Final = "gatehouse-token"  # noqa: S105 - the name of an object
_CANARY_ROLE: Final = "gatehouse-canary"
_COUNTING_ROLE: Final = "gatehouse-counts"
_RBAC: Final = "rbac.authorization.k8s.io"


def manifests(
    cluster: Cluster, config: WebhookClientConfig, grants: Sequence[Grant] | None = None
) -> list[dict[str, Any]]:
    """Make all manifests of a cluster; ``config`` is how it calls the portal.

    ``grants`` are those of ``manifest_grants``, by default the wide ones.
    """
    granted = manifest_grants(cluster) if grants is None else grants
    account = _object_head("v1", "ServiceAccount", ACCOUNT, cluster.portal_namespace)
    return [
        _object_head("v1", "Namespace", cluster.portal_namespace),
        _object_head("v1", "Namespace", CANARY_NAMESPACE),
        # No pod runs as this account: the portal uses it from outside.
        {**account, "automountServiceAccountToken": False},
        *chain.from_iterable(
            _role_and_binding(role_name, place, rules, cluster.portal_namespace)
            for (role_name, place), rules in _rules_by_role(granted).items()
        ),
        metadata_policy_definition(),
        # Last, since from then on the cluster calls the portal.
        *webhooks(cluster, config),
    ]


def token_secret(cluster: Cluster) -> dict[str, Any]:
    """Make the Secret in which the cluster stores a token of the account without expiry."""
    secret = _object_head("v1", "Secret", TOKEN_SECRET, cluster.portal_namespace)
    secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": ACCOUNT}
    return {**secret, "type": "kubernetes.io/service-account-token"}


def _rules_by_role(grants: Iterable[Grant]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The rules by role and namespace; resources of one group with the same verbs share a rule."""
    roles: dict[tuple[str, str], dict[object, dict[str, Any]]] = {}
    for grant in grants:
        role = {"": ACCOUNT, CANARY_NAMESPACE: _CANARY_ROLE}.get(grant.namespace, _COUNTING_ROLE)
        # Apart from the rest: manifests without the choice leave it as it is.
        role = _COUNTING_ROLE if grant.is_chosen else role
        rules = roles.setdefault((role, grant.namespace), {})
        rule = rules.setdefault(
            (grant.group, grant.verbs, grant.names),
            {
                "apiGroups": [grant.group],
                "resources": [],
                "verbs": list(grant.verbs),
                **({"resourceNames": list(grant.names)} if grant.names else {}),
            },
        )
        rule["resources"].append(grant.resource)
    return {role: list(rules.values()) for role, rules in roles.items()}


def _role_and_binding(
    name: str, role_namespace: str, rules: list[dict[str, Any]], portal_namespace: str
) -> list[dict[str, Any]]:
    """Make the role for one namespace, or for all, and its binding to the account."""
    kind = "Role" if role_namespace else "ClusterRole"
    binding = {
        **_object_head(f"{_RBAC}/v1", f"{kind}Binding", name, role_namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": portal_namespace}],
    }
    return [{**_object_head(f"{_RBAC}/v1", kind, name, role_namespace), "rules": rules}, binding]


def _object_head(version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    head_metadata: dict[str, Any] = {"name": name}
    if namespace:
        head_metadata["namespace"] = namespace
    head_metadata["labels"] = {"app.kubernetes.io/managed-by": "gatehouse"}
    return {"apiVersion": version, "kind": kind, "metadata": head_metadata}


def present_key(cluster: Cluster, client: Client) -> str:
    """The credential that a cluster uses now; empty if it has no valid one."""
    live_configuration = client.get("ValidatingWebhookConfiguration", CONFIGURATION)
    live_key = key_in(live_configuration) if live_configuration else ""
    return live_key if live_key and is_valid_key(cluster, live_key) else ""


def is_valid_key(cluster: Cluster, key: str) -> bool:
    """Whether a key is a credential of the cluster, neither revoked nor expired."""
    unexpired = Q(expires=None) | Q(expires__gt=read_clock())
    key_digest = WebhookCredential.digest_of(key)
    credentials = WebhookCredential.objects.filter(
        unexpired, cluster=cluster, digest=key_digest, revoked=None
    )
    return credentials.exists()


def with_key(config: WebhookClientConfig, key: str) -> WebhookClientConfig:
    """Set the credential in the address."""
    return dataclasses.replace(config, key=key)
