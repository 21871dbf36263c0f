"""Tables Charge, QuotaUsage, QuotaUsagePoint, LedgerPass: columns, indexes, constraints alone."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from policies.models.cluster import Cluster
from policies.models.resource_quota import ResourceQuota


class Charge(models.Model):
    """The usage of one object, in the resources that one quota limits.

    It names the quota by uid: a deleted quota that is restored finds its charges again. Times are
    the database's. All indexes, and on PostgreSQL the primary key, begin
    with the cluster, so that the table can be distributed by it.
    """

    class State(models.TextChoices):
        """Reserved when admitted, confirmed when seen, released when gone."""

        RESERVED = "reserved"
        CONFIRMED = "confirmed"
        RELEASED = "released"

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="charges", db_index=False)
    quota_uid = models.UUIDField()
    # No constraint in the database: charges outlive their quota.
    quota = models.ForeignObject(
        ResourceQuota,
        models.DO_NOTHING,
        from_fields=["quota_uid"],
        to_fields=["uid"],
        null=True,
        related_name="charges",
    )
    namespace = models.CharField(max_length=63)
    resource = models.CharField(
        max_length=317, help_text="plural with its group, such as deployments.apps"
    )
    object_uid = models.CharField(max_length=128)
    object_name = models.CharField(max_length=253, blank=True)
    amounts = models.JSONField(default=dict)
    state = models.CharField(max_length=9, choices=State, default=State.RESERVED)
    reserved_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="when the object was last admitted"
    )
    created = models.DateTimeField(db_default=Now(), editable=False)
    updated = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar = ["cluster_id", "id"]
        indexes: ClassVar = [
            models.Index(fields=["quota_uid", "cluster"], name="charge_by_quota"),
            models.Index(
                fields=["namespace", "cluster"],
                condition=Q(state="reserved"),
                name="charge_unconfirmed",
            ),
        ]
        constraints: ClassVar = [
            # In this order the index also finds the charges of one object; no other index does.
            models.UniqueConstraint(
                fields=["cluster", "resource", "object_uid", "quota_uid"],
                name="charge_once_per_object",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["reserved", "confirmed", "released"]),
                name="charge_state_known",
            ),
            models.CheckConstraint(condition=~Q(object_uid=""), name="charge_has_an_object"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} {self.object_name or self.object_uid}: {self.state}"


class QuotaUsage(models.Model):
    """The sum of a quota's charges that are not released, by tracked name of its ``hard``.

    Only the ledger (``policies.ledger``) writes it. On PostgreSQL the primary key is (quota,
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
    """A quota's used amounts at one moment, kept where they differ from the last point."""

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


class LedgerPass(models.Model):
    """The last complete list of one resource that was compared with the ledger. Database times.

    ``doubted`` is when a list first lacked so many objects that the ledger waits for another list.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="ledger_passes")
    resource = models.CharField(
        max_length=317, help_text="plural with its group, such as deployments.apps"
    )
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    objects_seen = models.PositiveIntegerField(default=0)
    counts = models.JSONField(
        default=dict, blank=True, help_text="charges confirmed, added, corrected and released"
    )
    doubted = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True, help_text="why the resource could not be listed")

    class Meta:
        ordering: ClassVar = ["cluster_id", "resource"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "resource"], name="ledgerpass_once"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.resource}: {self.objects_seen}"
