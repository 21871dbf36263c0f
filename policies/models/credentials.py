"""Tables WebhookCredential with its digest, KeyCheck, SignInCount of failures, and SignIn."""

from __future__ import annotations

import hmac
from datetime import timedelta
from functools import lru_cache
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.utils import timezone

from policies.models.cluster import Cluster
from policies.models.edits import AppendOnlyError


class WebhookCredential(models.Model):
    """A secret with which a cluster authenticates; only its keyed digest is stored."""

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
        """The keyed digest under which a secret is stored: 64 hex digits."""
        pepper: str = getattr(settings, "GATEHOUSE_KEY_PEPPER", "")
        digest_secret = (
            _secret_digest if len(secret) <= _LONGEST_CACHED_SECRET else _secret_digest.__wrapped__
        )
        return digest_secret(pepper, settings.SECRET_KEY, secret)


# Characters. No secret of ours is longer, and anybody may send such texts: do not cache them.
_LONGEST_CACHED_SECRET = 256


# Each review carries one of a few secrets, so nearly every digest is computed already.
@lru_cache(1024)
def _secret_digest(own: str, site: str, secret: str) -> str:
    """Digest a secret with the configured pepper, else with one derived from the site's key."""
    pepper_purpose = b"gatehouse webhook keys"
    pepper = own.encode() or hmac.new(site.encode(), pepper_purpose, "sha256").digest()
    return hmac.new(pepper, secret.encode(), "sha256").hexdigest()


class KeyCheck(models.Model):
    """One row: a value derived from the secret key with which the credentials were made.

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


KEPT: Final = timedelta(days=90)
"""How long tries to sign in are kept."""
MOST_FAILURES: Final = 100
"""Failures of one account, and of all unknown names, that are kept of a day."""
LONGEST_ADDRESS: Final = 45
MOST_ROWS: Final = 100_000
"""At most so many keys are counted: somebody who tries random names must not fill the disk."""


class SignInCounts(models.Manager["SignInCount"]):
    """Counts of failed sign-ins in windows that begin with the first failure."""

    def failures(self, key: str, window: timedelta) -> int:
        """The number of failures under this key in its window."""
        since = timezone.now() - window
        return self.filter(key=key, since__gt=since).values_list("count", flat=True).first() or 0

    def count_one(self, key: str, window: timedelta) -> None:
        """Count one more failure; begin a new window where the last one is over."""
        window_start = timezone.now()
        # The database adds: processes that read and wrote the number would lose counts.
        running_window = self.filter(key=key, since__gt=window_start - window)
        if running_window.update(count=F("count") + 1):
            return
        if self.filter(key=key).update(count=1, since=window_start, until=window_start + window):
            return
        if self.count() >= MOST_ROWS:
            return
        try:
            with transaction.atomic():
                self.create(key=key, count=1, since=window_start, until=window_start + window)
        except IntegrityError:
            # Another process began the same window between our update and our insert.
            running_window.update(count=F("count") + 1)

    def forget_old(self) -> None:
        """Delete windows that are over."""
        self.filter(until__lt=timezone.now()).delete()


class SignInCount(models.Model):
    """The failures of one key since the beginning of its window."""

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField(default=0)
    since = models.DateTimeField()
    until = models.DateTimeField(db_index=True)

    objects = SignInCounts()

    def __str__(self) -> str:
        return f"{self.key[:8]} {self.count}"


class SignIns(models.Manager["SignIn"]):
    """Tries to sign in: noted once, and removed with time."""

    def note(self, user: Any, *, way: str, address: str, outcome: str) -> None:
        """Note one try; ``user`` is None where no account has the name that was given."""
        if outcome == SignIn.Outcome.FAILED:
            since = timezone.now() - timedelta(days=1)
            # Noted for unknown names as well: they must not be answered faster than known ones.
            if self.filter(user=user, outcome=outcome, created__gt=since).count() >= MOST_FAILURES:
                return
        self.create(user=user, way=way, address=address[:LONGEST_ADDRESS], outcome=outcome)

    def forget_old(self) -> None:
        """Delete what is older than ``KEPT``."""
        self.filter(created__lt=timezone.now() - KEPT).delete()


class SignIn(models.Model):
    """One try to sign in: which account, when, how, from where, and whether it succeeded.

    Never changed, and removed after ``KEPT`` alone; the database refuses anything else (migration
    0016). The name that was given is not stored: people type passwords into that field.
    """

    class Way(models.TextChoices):
        """How somebody signed in."""

        FORM = "password", "password"
        INVITATION = "invitation", "link of an invitation"
        API = "api", "password, over the API"
        DEMO = "demo", "chosen in the demo"

    class Outcome(models.TextChoices):
        """Whether it succeeded."""

        SIGNED_IN = "signed-in", "signed in"
        FAILED = "failed", "failed"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="sign_ins"
    )
    created = models.DateTimeField(default=timezone.now, editable=False, db_index=True)
    way = models.CharField(max_length=10, choices=Way)
    address = models.CharField(max_length=LONGEST_ADDRESS, blank=True)
    outcome = models.CharField(max_length=9, choices=Outcome)

    objects = SignIns()

    class Meta:
        ordering: ClassVar = ["-created", "-pk"]
        indexes: ClassVar = [models.Index(fields=["user", "-created"], name="signin_of_user")]

    def __str__(self) -> str:
        return f"{self.user or 'unknown name'}: {self.outcome}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store it once."""
        if not self._state.adding:
            raise AppendOnlyError("tries to sign in are never changed")
        super().save(*args, **kwargs)
