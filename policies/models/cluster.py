"""Cluster, LimitedResource and WebhookCredential."""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q

from policies.models.recorded import Recorded
from policies.validators import DNS_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.errors import FieldError


PORTAL_NAMESPACE = "gatehouse"


class Cluster(Recorded):
    """A Kubernetes cluster that asks for decisions."""

    kind = "Cluster"

    class Authority(models.TextChoices):
        """Whose verdict on ranges and quotas counts; metadata policies are always the portal's."""

        PORTAL = "portal"
        NATIVE = "native"

    name = models.CharField(
        max_length=63, unique=True, validators=[RegexValidator(DNS_LABEL, "must be a DNS label")]
    )
    description = models.TextField(blank=True)
    external_id = models.CharField(max_length=253, blank=True)
    authority = models.CharField(
        max_length=6,
        choices=Authority,
        default=Authority.PORTAL,
        help_text="native: the API server's own plugins refuse, the portal only warns",
    )
    covers_kube_system = models.BooleanField(
        default=False, help_text="ask the portal about kube-system, too, failing open"
    )
    portal_namespace = models.CharField(
        max_length=63,
        default=PORTAL_NAMESPACE,
        validators=[RegexValidator(DNS_LABEL, "must be a DNS label")],
        help_text="where the portal's account lives there, and about which it is never asked",
    )
    policy_revision = models.PositiveBigIntegerField(default=0, editable=False)
    unconfirmed_limit = models.PositiveIntegerField(
        default=0,
        help_text="most reservations of one namespace that may wait for confirmation; 0: no limit",
    )

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(name=""), name="cluster_has_a_name"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="cluster_revision_counts"),
            models.CheckConstraint(
                condition=Q(authority__in=["portal", "native"]), name="cluster_authority_known"
            ),
        ]

    @property
    def owner(self) -> Cluster:
        """Itself."""
        return self

    @property
    def _is_elsewhere(self) -> bool:
        return self.portal_namespace != PORTAL_NAMESPACE

    def to_manifest(self) -> dict[str, Any]:
        """Give the cluster in the shape of a Kubernetes object."""
        spec = {
            "description": self.description,
            "externalID": self.external_id,
            "unconfirmedLimit": self.unconfirmed_limit,
            "authority": self.authority if self.authority != self.Authority.PORTAL else "",
            "coversKubeSystem": self.covers_kube_system,
            "portalNamespace": self.portal_namespace if self._is_elsewhere else "",
        }
        return {
            "apiVersion": "policy.gatehouse.dev/v1alpha1",
            "kind": self.kind,
            "metadata": {"name": self.name},
            "spec": {name: value for name, value in spec.items() if value},
        }

    def read_manifest(self, manifest: Mapping[str, Any]) -> Self:
        """Take over name, description, limit, and who enforces where."""
        spec = manifest.get("spec") or {}
        self.name = manifest["metadata"]["name"]
        self.description = spec.get("description", "")
        self.external_id = spec.get("externalID", "")
        self.unconfirmed_limit = spec.get("unconfirmedLimit", 0)
        self.authority = spec.get("authority") or self.Authority.PORTAL
        self.portal_namespace = spec.get("portalNamespace") or PORTAL_NAMESPACE
        self.covers_kube_system = bool(spec.get("coversKubeSystem", False))
        return self

    def rule_errors(self, _manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """Nothing beyond its fields' own shape."""
        return []


class LimitedResource(models.Model):
    """One entry of the cluster's ``limitedResources``."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="limited_resources")
    position = models.PositiveIntegerField()
    api_group = models.CharField(max_length=253, blank=True)
    resource = models.CharField(max_length=253)
    match_contains = models.JSONField(default=list, blank=True)
    match_scopes = models.JSONField(default=list, blank=True)

    class Meta:
        ordering: ClassVar = ["cluster_id", "position"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "position"], name="limitedresource_position_once"
            ),
            models.CheckConstraint(condition=~Q(resource=""), name="limitedresource_has_resource"),
        ]

    def __str__(self) -> str:
        return f"{self.resource}.{self.api_group}" if self.api_group else self.resource

    def to_manifest(self) -> dict[str, Any]:
        """Give the entry as the quota plugin's configuration writes it."""
        entry: dict[str, Any] = {"apiGroup": self.api_group, "resource": self.resource}
        if self.match_contains:
            entry["matchContains"] = self.match_contains
        if self.match_scopes:
            entry["matchScopes"] = self.match_scopes
        return {name: value for name, value in entry.items() if value}


class WebhookCredential(models.Model):
    """Who may ask in a cluster's name: a keyed digest of a secret that is shown once."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="credentials")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    label = models.CharField(max_length=100)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)
    revoked = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering: ClassVar = ["cluster_id", "-created", "-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(digest__regex=r"^[0-9a-f]{64}$"),
                name="webhookcredential_digest_shape",
            ),
            models.CheckConstraint(
                condition=Q(expires=None) | Q(expires__gt=F("created")),
                name="webhookcredential_expires_later",
                violation_error_message="must be in the future",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @staticmethod
    def digest_of(secret: str) -> str:
        """Give the keyed digest under which a secret is stored: 64 hex digits."""
        own: str = getattr(settings, "GATEHOUSE_KEY_PEPPER", "")
        digest = _digest if len(secret) <= _LONGEST_KEPT else _digest.__wrapped__
        return digest(own, settings.SECRET_KEY, secret)


_LONGEST_KEPT = 256  # characters; what is longer is no secret of ours


@lru_cache(1024)  # the few secrets by which clusters call: each review comes with one of them
def _digest(own: str, site: str, secret: str) -> str:
    """Digest a secret with the pepper; without one of its own it is derived from the site's key."""
    derived = b"gatehouse webhook keys"
    pepper = own.encode() or hmac.new(site.encode(), derived, "sha256").digest()
    return hmac.new(pepper, secret.encode(), "sha256").hexdigest()
