"""What admitted objects cost their quotas: one row for each quota and object, amounts absolute."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from policies.models.cluster import Cluster
from policies.models.resource_quota import ResourceQuota


class Charge(models.Model):
    """The usage of one object, cut to one quota's names.

    ``quota`` is empty while the quota is deleted; ``quota_uid`` finds it when it is restored.
    """

    class State(models.TextChoices):
        """Reserved when admitted, confirmed when seen, released when gone."""

        RESERVED = "reserved"
        CONFIRMED = "confirmed"
        RELEASED = "released"

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="charges")
    quota = models.ForeignKey(
        ResourceQuota, models.SET_NULL, null=True, blank=True, related_name="charges"
    )
    quota_uid = models.UUIDField()
    namespace = models.CharField(max_length=63)
    resource = models.CharField(max_length=317, help_text="as in pods or deployments.apps")
    object_uid = models.CharField(max_length=128)
    object_name = models.CharField(max_length=253, blank=True)
    amounts = models.JSONField(default=dict)
    state = models.CharField(max_length=9, choices=State, default=State.RESERVED)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [
            models.Index(fields=["cluster", "resource", "object_uid"], name="charge_by_object"),
            models.Index(fields=["state", "updated"], name="charge_by_age"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["quota_uid", "resource", "object_uid"], name="charge_once_per_object"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["reserved", "confirmed", "released"]),
                name="charge_state_known",
            ),
            models.CheckConstraint(condition=~Q(object_uid=""), name="charge_has_an_object"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} {self.object_name or self.object_uid}: {self.state}"
