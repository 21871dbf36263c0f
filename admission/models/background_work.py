"""Table BackgroundWork: heartbeat ``seen`` and problem of worker, beat, export, retention."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class BackgroundWork(models.Model):
    """One row for the worker, for beat, and for each task whose failure a person must see."""

    class Name(models.TextChoices):
        """The parts that report."""

        WORKER = "worker"
        BEAT = "beat"
        EXPORT = "export"
        RETENTION = "retention"

    name = models.CharField(max_length=16, primary_key=True, choices=Name.choices)
    seen = models.DateTimeField()
    problem = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return self.name


def note_work(name: BackgroundWork.Name, problem: str = "") -> None:
    """Record a heartbeat, with a problem or without."""
    heartbeat = {"seen": timezone.now(), "problem": problem}
    BackgroundWork.objects.update_or_create(name=name, defaults=heartbeat)
