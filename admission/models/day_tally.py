"""Table DayTally: how often each value of some fields occurs in a day that is over."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

LONGEST_VALUE = 1024
"""Characters of a value; the longest are policies: kind, namespace and name."""


class DayTally(models.Model):
    """The decisions of one cluster and one day of UTC that have a value of a field.

    A day that was counted has a row without cluster, field and value, with the number of all its
    decisions. Its rows go together: when retention or a demo changes the day, it is counted again.
    """

    day = models.DateField(db_index=True)
    cluster = models.CharField(max_length=253, blank=True)
    field = models.CharField(max_length=16, blank=True)
    value = models.CharField(max_length=LONGEST_VALUE, blank=True)
    number = models.PositiveBigIntegerField()

    class Meta:
        verbose_name_plural = "day tallies"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["field", "value", "day", "cluster"], name="day_tally_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.cluster} {self.field} {self.value}"
