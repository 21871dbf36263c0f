"""Tables AuditHold (legal hold: first day, last day, release), AuditExport, RetentionRun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    from datetime import date


class AuditHoldQuerySet(models.QuerySet["AuditHold"]):
    """Queries of legal holds."""

    def in_force(self) -> AuditHoldQuerySet:
        """Only holds that are not released."""
        return self.filter(released__isnull=True)

    def on_day(self, day: date) -> AuditHoldQuerySet:
        """Only holds that cover this day (of UTC)."""
        not_ended = models.Q(last_day__isnull=True) | models.Q(last_day__gte=day)
        return self.in_force().filter(not_ended, first_day__lte=day)

    def rows(self) -> models.Q:
        """The condition on AuditEvent that one of these holds covers a row, whatever its day."""
        held_rows = models.Q(pk__in=[])
        for hold in self:
            held_rows |= hold.rows()
        return held_rows


class AuditHold(models.Model):
    """A legal hold: rows that it covers stay on record until it is released."""

    cluster = models.CharField(max_length=253)
    namespace = models.CharField(max_length=253, blank=True, help_text="Empty: the whole cluster.")
    first_day = models.DateField("from (UTC)")
    last_day = models.DateField(
        "to (UTC)", null=True, blank=True, help_text="Inclusive. Empty: no end."
    )
    reason = models.TextField()
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField("who", max_length=253, blank=True, editable=False)
    released = models.DateTimeField(null=True, blank=True, editable=False)
    released_by = models.CharField(max_length=253, blank=True, editable=False)

    objects = AuditHoldQuerySet.as_manager()

    class Meta:
        """The newest first."""

        verbose_name = "legal hold"
        ordering = ["-created", "-id"]

    def __str__(self) -> str:
        place = f"{self.cluster}/{self.namespace}" if self.namespace else self.cluster
        return f"{place} from {self.first_day}"

    def clean(self) -> None:
        """Refuse a hold that ends before it begins.

        Raises:
            ValidationError: with code ``ends_first`` on ``last_day``.
        """
        if self.first_day and self.last_day and self.last_day < self.first_day:
            ends_first = "The last day is before the first."
            raise ValidationError({"last_day": ValidationError(ends_first, code="ends_first")})

    def release(self, *, user: str) -> None:
        """End the hold: its rows may be removed like others from now on."""
        self.released = timezone.now()
        self.released_by = user
        self.save(update_fields=["released", "released_by"])

    def rows(self) -> models.Q:
        """The condition on AuditEvent that this hold covers a row, whatever its day."""
        held_place = models.Q(cluster=self.cluster)
        return held_place & models.Q(namespace=self.namespace) if self.namespace else held_place


class KeptQuerySet(models.QuerySet[Any]):
    """Queries of rows that are written once."""

    def update(self, **_kwargs: Any) -> Never:
        """Refuse: these rows are append-only."""
        raise NotImplementedError("This is written once and never changed.")

    def delete(self) -> Never:
        """Refuse: as ``update``."""
        raise NotImplementedError("This is written once and never removed.")

    delete.alters_data = True  # type: ignore[attr-defined]  # a mark that templates read
    update.alters_data = True  # type: ignore[attr-defined]  # a mark that templates read


class AuditExport(models.Model):
    """A day of the record as a file, complete and read again; append-only.

    A day is exported again, under the next number, when rows came in after its first export.
    """

    day = models.DateField()
    number = models.PositiveSmallIntegerField(default=1)
    path = models.CharField(max_length=1024, help_text="Relative to the folder of exports.")
    sha256 = models.CharField("SHA-256 of the file", max_length=64)
    rows = models.PositiveBigIntegerField()
    finished = models.DateTimeField()

    objects = KeptQuerySet.as_manager()

    class Meta:
        """The newest day first."""

        verbose_name = "export"
        ordering = ["-day", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["day", "number"], name="audit_export_once"),
        ]

    def __str__(self) -> str:
        return f"{self.path} ({self.rows} rows)"


class RetentionRun(models.Model):
    """A removal of rows from the record: which, how many, and the export that contains them.

    Append-only. One row for each transaction that removed something.
    """

    class Verdicts(models.TextChoices):
        """Which rows of the day were due."""

        ALLOWED = "allowed", "Allowed and mutated"
        DENIED = "denied", "Denied"
        ALL = "all", "All"

    created = models.DateTimeField(auto_now_add=True)
    day = models.DateField()
    verdicts = models.CharField(max_length=8, choices=Verdicts.choices)
    removed = models.PositiveBigIntegerField("rows removed")
    kept = models.PositiveBigIntegerField("rows kept")
    held = models.PositiveBigIntegerField("of these by a hold")
    export = models.ForeignKey(AuditExport, on_delete=models.PROTECT, related_name="removals")
    export_sha256 = models.CharField("SHA-256 of the export", max_length=64)

    objects = KeptQuerySet.as_manager()

    class Meta:
        """The newest first."""

        verbose_name = "retention run"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.day} {self.verdicts}: {self.removed} rows"
