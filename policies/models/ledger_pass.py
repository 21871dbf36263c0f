"""LedgerPass: the lists of objects that the ledger was last compared with."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from policies.models.cluster import Cluster


class LedgerPass(models.Model):
    """The last complete list of one resource that the ledger was held against. Database times.

    ``doubted`` is when a list first lacked so many objects that one list is not enough.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="ledger_passes")
    resource = models.CharField(max_length=317, help_text="as in pods or deployments.apps")
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    objects_seen = models.PositiveIntegerField(default=0)
    counts = models.JSONField(
        default=dict, blank=True, help_text="charges confirmed, added, corrected, released"
    )
    doubted = models.DateTimeField(null=True, blank=True)
    trouble = models.TextField(blank=True, help_text="why it could not be listed")

    class Meta:
        ordering: ClassVar = ["cluster_id", "resource"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "resource"], name="ledgerpass_once"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.resource}: {self.objects_seen}"
