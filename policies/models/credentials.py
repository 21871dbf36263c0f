"""Credentials: a cluster's webhook credentials, the check of the secret key, failed sign-ins."""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final

from django.conf import settings
from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.utils import timezone

from policies.models.cluster import Cluster

if TYPE_CHECKING:
    from datetime import timedelta


class WebhookCredential(models.Model):
    """Who may ask in a cluster's name: a keyed digest of a secret that is shown once."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="credentials")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    label = models.CharField(max_length=100)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)
    revoked = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering: ClassVar = ["cluster_id", "-created", "-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(digest__regex=r"^[0-9a-f]{64}$"),
                name="webhookcredential_digest_shape",
            ),
            models.CheckConstraint(
                condition=Q(expires=None) | Q(expires__gt=F("created")),
                name="webhookcredential_expires_later",
                violation_error_message="must be in the future",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @staticmethod
    def digest_of(secret: str) -> str:
        """Give the keyed digest under which a secret is stored: 64 hex digits."""
        own: str = getattr(settings, "GATEHOUSE_KEY_PEPPER", "")
        digest = _digest if len(secret) <= _LONGEST_KEPT else _digest.__wrapped__
        return digest(own, settings.SECRET_KEY, secret)


_LONGEST_KEPT = 256  # characters; what is longer is no secret of ours


@lru_cache(1024)  # the few secrets by which clusters call: each review comes with one of them
def _digest(own: str, site: str, secret: str) -> str:
    """Digest a secret with the pepper; without one of its own it is derived from the site's key."""
    derived = b"gatehouse webhook keys"
    pepper = own.encode() or hmac.new(site.encode(), derived, "sha256").digest()
    return hmac.new(pepper, secret.encode(), "sha256").hexdigest()


class KeyCheck(models.Model):
    """One row: a value that only the key of this database's credentials gives.

    The key itself cannot be derived from it.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    value = models.CharField(max_length=64)
    made = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="keycheck_is_one_row"),
        ]

    def __str__(self) -> str:
        return f"key of {self.made:%Y-%m-%d}"


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
