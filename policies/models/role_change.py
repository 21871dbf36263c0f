"""What was given to and taken from whom: kept for good, in words that outlive their accounts."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class RoleChange(models.Model):
    """One role given or taken back. Rows are only ever added; the database refuses all else."""

    class Action(models.TextChoices):
        """What was done."""

        GIVEN = "given"
        TAKEN = "taken back"

    created = models.DateTimeField(auto_now_add=True)
    action = models.CharField(max_length=10, choices=Action.choices)
    subject = models.CharField(max_length=160)
    role = models.CharField(max_length=8)
    cluster = models.CharField(max_length=253, blank=True)
    namespace = models.CharField(max_length=63, blank=True)
    actor = models.CharField(max_length=150)

    class Meta:
        ordering: ClassVar = ["-created", "-pk"]

    def __str__(self) -> str:
        return f"{self.action}: {self.subject}: {self.role} in {self.scope}"

    @property
    def scope(self) -> str:
        """Where it holds, in words."""
        cluster = self.cluster or "every cluster"
        return f"{cluster}, namespace {self.namespace}" if self.namespace else cluster
