"""How much of a quota was used at some moment: a line to look at, not the ledger's truth."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from policies.models.cluster import Cluster


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
