"""Tables WebhookHealth, ClusterAlert and UsageComparison: columns and constraints alone."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from policies.models.cluster import Cluster


class WebhookHealth(models.Model):
    """The last check of one cluster's webhooks. Times are the database's."""

    cluster = models.OneToOneField(Cluster, models.CASCADE, related_name="webhook_health")
    checked = models.DateTimeField(null=True, blank=True)
    canary_refused = models.BooleanField(null=True, blank=True)
    canary_message = models.TextField(blank=True)
    canary_milliseconds = models.FloatField(null=True, blank=True)
    mutating_asked = models.BooleanField(
        null=True, blank=True, help_text="whether the mutating webhook received the canary"
    )
    last_refused = models.DateTimeField(null=True, blank=True)
    doubtful_since = models.DateTimeField(
        null=True, blank=True, help_text="since when the portal has refused no canary"
    )
    configuration = models.JSONField(
        default=dict, blank=True, help_text="by webhook: ok, missing or changed"
    )
    left_out = models.JSONField(
        default=list,
        blank=True,
        help_text="namespaces that the installed validating webhook leaves out",
    )
    certificate_expires = models.DateTimeField(null=True, blank=True)
    certificates = models.JSONField(default=dict, blank=True, help_text="expiry by certificate")

    def __str__(self) -> str:
        return f"{self.cluster}: canary {'refused' if self.canary_refused else 'not refused'}"


class ClusterAlert(models.Model):
    """A condition of a cluster that needs a person; open until ``resolved``."""

    class Severity(models.TextChoices):
        """How soon a person is needed."""

        CRITICAL = "critical"
        WARNING = "warning"

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="alerts")
    kind = models.CharField(max_length=40, help_text="stable identifier, such as failing-open")
    subject = models.CharField(max_length=400, blank=True)
    severity = models.CharField(max_length=8, choices=Severity)
    message = models.TextField()
    since = models.DateTimeField()
    seen = models.DateTimeField()
    resolved = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-since", "-id"]
        constraints: ClassVar = [
            # Several processes may raise the same alert at once.
            models.UniqueConstraint(
                fields=["cluster", "kind", "subject"],
                condition=Q(resolved=None),
                name="clusteralert_open_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.kind}: {self.message}"


class UsageComparison(models.Model):
    """One quota's usage in the cluster and in the ledger, amounts by resource name.

    ``differences`` are ``{resource, cluster, ledger, objects: [{kind, name, uid, amount, side,
    why}], unexplained}``: ``side`` is the only one that counts the object.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="usage_comparisons")
    namespace = models.CharField(max_length=63)
    quota = models.CharField(max_length=253)
    observed = models.JSONField(default=dict, blank=True)
    ledger = models.JSONField(default=dict, blank=True)
    differences = models.JSONField(default=list, blank=True)
    compared = models.DateTimeField()
    since = models.DateTimeField(null=True, blank=True, help_text="since when the amounts differ")

    class Meta:
        ordering: ClassVar = ["cluster_id", "namespace", "quota"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "quota"], name="usagecomparison_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.quota}"
