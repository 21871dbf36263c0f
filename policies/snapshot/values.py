"""Snapshot, ClusterPolicies, NamespacePolicies, QuotaKey: look-ups; Authentication by digest."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils import timezone

from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.policy import Authority, Enforcement, LimitedResource, PolicySet
from policies.models import WebhookCredential

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping
    from uuid import UUID

    from engine.namespace_class import NamespaceSelector


class Authentication(StrEnum):
    """The result of looking up a presented secret."""

    OK = "ok"
    UNKNOWN = "unknown"
    OTHER_CLUSTER = "other-cluster"


def authenticate(cluster: str, secret: str) -> Authentication:
    """Whether a secret is valid for this cluster, for another one, or for none, in one query.

    Only the keyed digest is looked up.
    """
    digest = WebhookCredential.digest_of(secret)
    credential = (
        WebhookCredential.objects.filter(digest=digest, revoked=None)
        .select_related("cluster")
        .first()
    )
    if credential is None or not hmac.compare_digest(credential.digest, digest):
        return Authentication.UNKNOWN
    if credential.expires is not None and credential.expires <= timezone.now():
        return Authentication.UNKNOWN
    # The path names a cluster, the secret proves one: they must be the same.
    is_own = hmac.compare_digest(credential.cluster.name.encode(), cluster.encode(errors="replace"))
    return Authentication.OK if is_own else Authentication.OTHER_CLUSTER


class UnreadablePolicyError(Exception):
    """A stored policy cannot be read by the engine: nothing in its namespace can be judged."""


def counts_as_native(enforcement: str, *, is_native: object) -> bool:
    """Whether the cluster itself has a policy, or need not have it: one that only watches."""
    return bool(is_native) or enforcement != Enforcement.ENFORCE


def authority_of(setting: Authority, *, is_native: bool) -> Authority:
    """The authority in a namespace: the cluster's setting if all its policies are native.

    Otherwise the portal enforces, since the cluster itself lacks some of them.
    """
    return setting if is_native else Authority.PORTAL


@dataclass(frozen=True, slots=True)
class QuotaKey:
    """The ledger's keys of a quota: the id of its row, and the uid, which outlives the row."""

    id: int
    uid: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespacePolicies:
    """The policies of one namespace; ``problem`` is the error if they cannot be read.

    ``is_native``: the cluster itself has all of its enforced ranges and quotas.
    """

    policy_set: PolicySet
    is_native: bool = True
    quota_keys: Mapping[str, QuotaKey] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPolicies:
    """All policies of one cluster at one ``revision``.

    ``namespaces`` has those with policies of their own, ``bare`` the names of the others that are
    known; ``credentials`` the digests that are not revoked, each with its expiry (None: never).
    ``class_selectors`` are those of the namespace classes for this cluster.
    """

    id: int
    uid: UUID
    name: str
    revision: int
    unconfirmed_limit: int = 0
    limited_resources: tuple[LimitedResource, ...] = ()
    authority: Authority = Authority.PORTAL
    version: KubernetesVersion = DEFAULT_VERSION
    namespaces: Mapping[str, NamespacePolicies] = field(default_factory=dict)
    bare: frozenset[str] = frozenset()
    credentials: Mapping[str, dt.datetime | None] = field(default_factory=dict)
    class_selectors: tuple[NamespaceSelector, ...] = ()
    portal_namespace: str = ""

    def awaits_policies(self, namespace: str) -> bool:
        """Whether a namespace is unknown here, and a class may give it policies once it is."""
        if not self.class_selectors or namespace in self.namespaces or namespace in self.bare:
            return False
        # By name alone: what labels it has is unknown, too.
        own = self.portal_namespace
        return any(each.could_match(namespace, reserved=own) for each in self.class_selectors)

    def policy_set(self, namespace: str) -> PolicySet:
        """The policy set of a namespace, with used amounts of 0.

        Raises ``UnreadablePolicyError``.
        """
        namespace_policies = self.namespaces.get(namespace)
        if namespace_policies is None:
            # Limited resources apply in every namespace, also in one without policies.
            return PolicySet(
                cluster=self.name,
                namespace=namespace,
                limited_resources=self.limited_resources,
                authority=self.authority,
                version=self.version,
            )
        if namespace_policies.problem:
            raise UnreadablePolicyError(namespace_policies.problem)
        return namespace_policies.policy_set

    def quota_keys(self, namespace: str) -> Mapping[str, QuotaKey]:
        """The ledger's keys of a namespace's quotas, by quota name."""
        namespace_policies = self.namespaces.get(namespace)
        return namespace_policies.quota_keys if namespace_policies else {}

    def credential(self, digest: str) -> bool:
        """Whether a digest is a credential of the cluster, neither revoked nor expired."""
        if digest not in self.credentials:
            return False
        credential_expires = self.credentials[digest]
        return credential_expires is None or credential_expires > timezone.now()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All clusters by name, each with all writes up to its ``revision``."""

    clusters: Mapping[str, ClusterPolicies] = field(default_factory=dict)

    def authenticate(self, cluster: str, secret: str) -> Authentication:
        """Whether a secret is valid for this cluster, for another one, or for none.

        Only keyed digests are compared, so that the duration reveals nothing of a secret. A
        credential issued a moment ago may still be unknown: refresh once, then try again.
        """
        digest = WebhookCredential.digest_of(secret)
        own_cluster = self.clusters.get(cluster)
        if own_cluster is not None and own_cluster.credential(digest):
            return Authentication.OK
        if any(any_cluster.credential(digest) for any_cluster in self.clusters.values()):
            return Authentication.OTHER_CLUSTER
        return Authentication.UNKNOWN
