"""QuotaUsage, the used amounts of a quota, and its points over time."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from policies.models.cluster import Cluster
from policies.models.resource_quota import ResourceQuota


class QuotaUsage(models.Model):
    """The sum of a quota's charges that are not released, by tracked name of its ``hard``.

    Written by the ledger (``policies.ledger``) alone. On PostgreSQL the primary key is (quota,
    cluster), so that the table can be distributed by cluster: every statement names the cluster.
    """

    quota = models.OneToOneField(
        ResourceQuota, models.CASCADE, primary_key=True, related_name="usage"
    )
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="+", db_index=False)
    quota_uid = models.UUIDField()
    namespace = models.CharField(max_length=63)
    used = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["quota_id"]
        verbose_name_plural = "quota usage"
        indexes: ClassVar = [
            models.Index(fields=["namespace", "cluster"], name="quotausage_by_namespace")
        ]

    def __str__(self) -> str:
        return ", ".join(f"{name}: {amount}" for name, amount in sorted(self.used.items()))


class QuotaUsagePoint(models.Model):
    """A quota's used amounts at a moment; only moments at which they had changed are kept."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="+", db_index=False)
    quota_uid = models.UUIDField()
    taken = models.DateTimeField()
    used = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["taken"]
        indexes: ClassVar = [models.Index(fields=["taken"], name="quotausagepoint_by_time")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "quota_uid", "taken"], name="quotausagepoint_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.quota_uid} {self.taken:%Y-%m-%d %H:%M}"
