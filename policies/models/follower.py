"""Tables ClusterFollower (lease, heartbeat) and OncomingWrite (a write that is under way)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from policies.models.cluster import Cluster


class ClusterFollower(models.Model):
    """The follower process that watches one cluster, and until when. Times are the database's.

    ``epoch`` counts the holders: one of an older epoch may not write. ``heartbeat`` is renewed only
    while all watches of the cluster are open, so that a young one means: what happens there is
    known here within a moment.
    """

    cluster = models.OneToOneField(
        Cluster, models.CASCADE, primary_key=True, related_name="follower"
    )
    holder = models.CharField(max_length=100, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    heartbeat = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True, help_text="why a watch is not open")

    def __str__(self) -> str:
        return f"{self.cluster} #{self.epoch}"


class OncomingWrite(models.Model):
    """A write of a policy or namespace that passed our webhook, and is not yet seen in the cluster.

    ``object_uid`` and ``resource_version`` are those of the object before the write; a create has
    the uid that its object will have, if that is known. The follower deletes the row once it has
    stored the object as it is after the write.
    """

    class Operation(models.TextChoices):
        """The operation of the admission review."""

        CREATE = "CREATE"
        UPDATE = "UPDATE"
        DELETE = "DELETE"

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="oncoming_writes")
    kind = models.CharField(max_length=63)
    namespace = models.CharField(
        max_length=63, blank=True, help_text="for a Namespace, its own name"
    )
    name = models.CharField(max_length=253)
    operation = models.CharField(max_length=6, choices=Operation)
    object_uid = models.CharField(max_length=64, blank=True)
    resource_version = models.CharField(max_length=100, blank=True)
    announced = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["cluster", "namespace"], name="oncomingwrite_by_namespace")
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.kind} {self.namespace}/{self.name}"
