"""Tables Rollout, the plan of a change set and where it stands, and its RolloutStages."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from policies.change_sets.rollout.plan import MODE_ORDER, RolloutPlan, read_plan
from policies.models.changes.change_set import ChangeSet


class Rollout(models.Model):
    """How a change set goes out; ``at`` is the number of its stage, 0 before the first one.

    ``since`` is when guards begin to count, ``ends`` when the stage is over, by the database's
    clock; ``left`` is what a stopped one had still to last. ``tripped`` says why it stopped by
    itself, ``unseen`` that whoever started it has not looked since.
    """

    change = models.OneToOneField(ChangeSet, models.CASCADE, related_name="rollout")
    plan = models.JSONField()
    at = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(null=True, blank=True)
    ends = models.DateTimeField(null=True, blank=True)
    left = models.DurationField(null=True, blank=True)
    starter = models.CharField(max_length=254, blank=True)
    tripped = models.TextField(blank=True)
    unseen = models.BooleanField(default=False)

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["starter"], condition=models.Q(unseen=True), name="rollout_unseen"
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(at__lte=models.F("total")), name="rollout_within_its_stages"
            ),
        ]

    def __str__(self) -> str:
        return f"roll-out of change #{self.change_id}"

    def to_plan(self) -> RolloutPlan:
        """The plan as a value."""
        return read_plan(self.plan)


class RolloutStage(models.Model):
    """A stage that a roll-out has begun: its wave, its mode, and how many objects it wrote."""

    rollout = models.ForeignKey(Rollout, models.CASCADE, related_name="stages")
    number = models.PositiveIntegerField()
    wave = models.PositiveIntegerField()
    mode = models.CharField(max_length=8, choices=[(each.value, each.value) for each in MODE_ORDER])
    written = models.PositiveIntegerField(default=0)
    began = models.DateTimeField()
    ended = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rollout", "number"], name="rolloutstage_once"),
        ]

    def __str__(self) -> str:
        return f"stage {self.number} of {self.rollout}"
