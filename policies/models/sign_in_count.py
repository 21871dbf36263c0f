"""SignInCount: failed sign-ins of late, one count for all processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import IntegrityError, models, transaction
from django.db.models import F
from django.utils import timezone

if TYPE_CHECKING:
    from datetime import timedelta

MOST_ROWS: Final = 100_000
"""Beyond so many nothing new is counted until old ones are forgotten: a bound on the disk."""


class SignInCounts(models.Manager["SignInCount"]):
    """Counts within windows that begin with the first try."""

    def failures(self, key: str, window: timedelta) -> int:
        """How many tries were counted under this key in its window."""
        since = timezone.now() - window
        return self.filter(key=key, since__gt=since).values_list("count", flat=True).first() or 0

    def count_one(self, key: str, window: timedelta) -> None:
        """Count one more, in a new window where the last one is over."""
        now = timezone.now()
        running = self.filter(key=key, since__gt=now - window)
        if running.update(count=F("count") + 1):
            return
        if self.filter(key=key).update(count=1, since=now, until=now + window):
            return
        if self.count() >= MOST_ROWS:
            return
        try:
            with transaction.atomic():
                self.create(key=key, count=1, since=now, until=now + window)
        except IntegrityError:
            running.update(count=F("count") + 1)  # somebody else has just begun it

    def forget_old(self) -> None:
        """Let go of windows that are over."""
        self.filter(until__lt=timezone.now()).delete()


class SignInCount(models.Model):
    """One key's count since the beginning of its window."""

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField(default=0)
    since = models.DateTimeField()
    until = models.DateTimeField(db_index=True)

    objects = SignInCounts()

    def __str__(self) -> str:
        return f"{self.key[:8]} {self.count}"
