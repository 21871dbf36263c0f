"""Table Replay: what is replayed, its state, progress and report; ``claim`` for one worker."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

if TYPE_CHECKING:
    from datetime import datetime

STALE_AFTER: Final = timedelta(seconds=60)
"""A running replay that nobody has noted for so long has lost its worker."""
MOST_ATTEMPTS: Final = 3


class ReplayQuerySet(models.QuerySet["Replay"]):
    """Queries of replays."""

    def open(self) -> ReplayQuerySet:
        """Those that are not over."""
        return self.filter(state__in=[Replay.State.QUEUED, Replay.State.RUNNING])

    def due(self, now: datetime) -> ReplayQuerySet:
        """Those that a worker may take: queued, or left by a worker that ended."""
        is_left = Q(state=Replay.State.RUNNING, noted__lt=now - STALE_AFTER)
        return self.filter(Q(state=Replay.State.QUEUED) | is_left).order_by("pk")


class Replay(models.Model):
    """A replay that somebody asked for; only its task writes progress and report.

    Names as text: it outlives what it names. ``proposal`` is JSON as text, which keeps the
    digits of numbers; empty ``namespaces`` are all of the cluster.
    """

    class State(models.TextChoices):
        """What has become of it."""

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        CANCELLED = "cancelled"
        FAILED = "failed"

    uid = models.UUIDField("UID", default=uuid.uuid4, unique=True, editable=False)
    cluster = models.CharField(max_length=253)
    namespaces = models.JSONField(default=list, blank=True)
    since = models.DateTimeField()
    until = models.DateTimeField()
    query = models.CharField(max_length=2000, blank=True)
    decisions = models.JSONField("decision ids", default=list, blank=True)
    proposal = models.TextField(help_text="as JSON: manifests, deletions and limited resources")
    change_set = models.BigIntegerField("change set", null=True, blank=True, db_index=True)
    user = models.CharField(max_length=253)
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    attempt = models.PositiveSmallIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    report = models.JSONField(null=True, blank=True)
    problem = models.TextField(blank=True)
    created = models.DateTimeField(db_default=Now(), editable=False)
    started = models.DateTimeField(null=True, blank=True)
    noted = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)

    objects = ReplayQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done", "cancelled", "failed"]),
                name="replay_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.uid} {self.cluster}: {self.state}"

    @property
    def is_over(self) -> bool:
        """Whether nothing of it changes any more."""
        return self.state not in (self.State.QUEUED, self.State.RUNNING)

    def claim(self, now: datetime) -> bool:
        """Take it for this worker; False where another one has, or it is over."""
        taken = Replay.objects.due(now).filter(pk=self.pk, attempt=self.attempt).order_by()
        is_mine = taken.update(
            state=self.State.RUNNING,
            attempt=F("attempt") + 1,
            started=now,
            noted=now,
            done=0,
            problem="",
        )
        if is_mine:
            self.refresh_from_db()
        return bool(is_mine)

    def note(self, **columns: Any) -> bool:
        """Store progress or the end; False where it was cancelled, or another worker has it."""
        mine = Replay.objects.filter(pk=self.pk, attempt=self.attempt, state=self.State.RUNNING)
        return bool(mine.update(**columns))

    def cancel(self, now: datetime) -> bool:
        """Cancel it unless it is over; its worker stops at the next piece."""
        still_open = Replay.objects.open().filter(pk=self.pk)
        return bool(still_open.update(state=self.State.CANCELLED, finished=now))
