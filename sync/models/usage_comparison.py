"""The last comparison of the ledger with a cluster's own figures. Shape only."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from policies.models.cluster import Cluster


class UsageComparison(models.Model):
    """One quota as the cluster counts it and as the ledger does, amounts by resource name.

    ``differences`` are ``{resource, cluster, ledger, objects: [{kind, name, uid, amount, side,
    why}], unexplained}``: ``side`` is who counts the object, the other does not.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="usage_comparisons")
    namespace = models.CharField(max_length=63)
    quota = models.CharField(max_length=253)
    observed = models.JSONField(default=dict, blank=True)
    ledger = models.JSONField(default=dict, blank=True)
    differences = models.JSONField(default=list, blank=True)
    compared = models.DateTimeField()
    since = models.DateTimeField(null=True, blank=True, help_text="since when they differ")

    class Meta:
        ordering: ClassVar = ["cluster_id", "namespace", "quota"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "quota"], name="usagecomparison_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.quota}"
