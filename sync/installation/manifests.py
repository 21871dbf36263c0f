"""Manifests to install in a cluster: account, permissions, custom resource, webhooks.

Plain manifests, in the order in which they can be applied. Whoever applies them is an
administrator of the cluster; the account that they make is the portal's, with no more than it
needs.
"""

from __future__ import annotations

import dataclasses
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from policies.ledger import read_clock
from policies.models import WebhookCredential
from sync.connect.permissions import CANARY_NAMESPACE, CONFIGURATION, Grant, grants_of, remark_on
from sync.installation.configurations import Asking, differences, key_in, webhooks
from sync.installation.custom_resource import metadata_policy_definition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.models import Cluster
    from sync.client import Client


__all__ = ["Asking", "differences", "key_in", "manifests", "remark", "token_secret", "webhooks"]

ACCOUNT: Final = "gatehouse"
TOKEN_SECRET: Final = "gatehouse-token"  # noqa: S105 - the name of an object
_CANARY_ROLE: Final = "gatehouse-canary"
_COUNTING_ROLE: Final = "gatehouse-counts"
_RBAC: Final = "rbac.authorization.k8s.io"


def manifests(cluster: Cluster, asking: Asking) -> list[dict[str, Any]]:
    """Write all that a cluster needs: account, rights, custom resource, webhooks.

    The webhooks come last: from then on the cluster asks. ``asking`` is how it does.
    """
    grants = grants_of(cluster)
    places = dict.fromkeys(grant.namespace for grant in grants)
    return [
        _namespace(cluster.portal_namespace),
        _namespace(CANARY_NAMESPACE),
        {**_head("v1", "ServiceAccount", ACCOUNT, cluster.portal_namespace), **_no_automount()},
        *chain.from_iterable(_rights(grants, place, cluster.portal_namespace) for place in places),
        metadata_policy_definition(),
        *webhooks(cluster, asking),
    ]


def remark(cluster: Cluster) -> str:
    """Say what an administrator should know of the rights before giving them; mostly nothing."""
    return remark_on(grants_of(cluster))


def token_secret(cluster: Cluster) -> dict[str, Any]:
    """Write the Secret into which the cluster puts a token of the account that does not expire."""
    secret = _head("v1", "Secret", TOKEN_SECRET, cluster.portal_namespace)
    secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": ACCOUNT}
    return {**secret, "type": "kubernetes.io/service-account-token"}


def _namespace(name: str) -> dict[str, Any]:
    return _head("v1", "Namespace", name)


def _no_automount() -> dict[str, Any]:
    """No pod runs as this account: the portal uses it from outside."""
    return {"automountServiceAccountToken": False}


def _rights(grants: Iterable[Grant], place: str, portal_namespace: str) -> list[dict[str, Any]]:
    """Write the role for one namespace, or for all, and give it to the account."""
    kind = "Role" if place else "ClusterRole"
    name = {"": ACCOUNT, CANARY_NAMESPACE: _CANARY_ROLE}.get(place, _COUNTING_ROLE)
    rules = [_rule(grant) for grant in grants if grant.namespace == place]
    role = {**_head(f"{_RBAC}/v1", kind, name, place), "rules": rules}
    return [role, _binding(kind, name, place, portal_namespace)]


def _rule(grant: Grant) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "apiGroups": [grant.group],
        "resources": [grant.resource],
        "verbs": list(grant.verbs),
    }
    if grant.names:
        rule["resourceNames"] = list(grant.names)
    return rule


def _binding(kind: str, name: str, namespace: str, portal_namespace: str) -> dict[str, Any]:
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": portal_namespace}
    return {
        **_head(f"{_RBAC}/v1", f"{kind}Binding", name, namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [account],
    }


def _head(version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {"app.kubernetes.io/managed-by": "gatehouse"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def present_key(cluster: Cluster, client: Client) -> str:
    """Read the credential with which a cluster asks now; empty where none is valid."""
    live = client.get("ValidatingWebhookConfiguration", CONFIGURATION)
    key = key_in(live) if live else ""
    return key if key and is_valid(cluster, key) else ""


def is_valid(cluster: Cluster, key: str) -> bool:
    """Whether a key is a credential of the cluster that is neither revoked nor expired."""
    good = Q(expires=None) | Q(expires__gt=read_clock())
    digest = WebhookCredential.digest_of(key)
    found = WebhookCredential.objects.filter(good, cluster=cluster, digest=digest, revoked=None)
    return found.exists()


def with_key(asking: Asking, key: str) -> Asking:
    """Ask with a credential."""
    return dataclasses.replace(asking, key=key)
