"""The record of every answer: AuditEvent, append-only; written by ``audit`` alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Never, Self

from django.db import models


class Verdict(models.TextChoices):
    """What the caller was told."""

    ALLOWED = "allowed", "Allowed"
    MUTATED = "mutated", "Mutated"
    DENIED = "denied", "Denied"


class AppendOnlyError(RuntimeError):
    """Somebody tried to change or remove what is on record."""

    def __init__(self) -> None:
        super().__init__("Audit events are append-only: they are never changed or removed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A stretch of the record, newest first; cursors are empty at its ends."""

    events: tuple[AuditEvent, ...]
    newer: str = ""
    older: str = ""


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    """Questions about the record. Nothing here writes."""

    def denied(self) -> Self:
        """Only refusals."""
        return self.filter(verdict=Verdict.DENIED)

    def allowed(self) -> Self:
        """Only what was let through, mutated or not."""
        return self.exclude(verdict=Verdict.DENIED)

    def for_cluster(self, cluster: str) -> Self:
        """Only what this cluster asked."""
        return self.filter(cluster=cluster)

    def for_namespace(self, namespace: str) -> Self:
        """Only objects of this namespace."""
        return self.filter(namespace=namespace)

    def for_reason(self, reason: str) -> Self:
        """Only events with this violation or Status reason."""
        return self.filter(reasons__contains=f" {reason} ")

    def for_policy(self, policy: str) -> Self:
        """Only events that asked this policy: its name, or ``Kind/namespace/name``."""
        needle = f" {policy} " if "/" in policy else f"/{policy} "
        return self.filter(policy_names__contains=needle)

    def charged(self) -> Self:
        """Only calls that count: no dry runs."""
        return self.filter(dry_run=False)

    def newest_first(self) -> Self:
        """By decision id: it begins with the time."""
        return self.order_by("-id")

    def page(self, *, before: str = "", after: str = "", size: int = 50) -> Page:
        """The ``size`` events next to a decision id: older than ``before`` or newer than ``after``.

        The last page costs what the first costs: no offset, no count.
        """
        if after:
            found = list(self.filter(id__gt=after).order_by("id")[: size + 1])
            return _page(found[size - 1 :: -1], newer=len(found) > size, older=True)
        rows = self.filter(id__lt=before) if before else self
        found = list(rows.newest_first()[: size + 1])
        return _page(found[:size], newer=bool(before), older=len(found) > size)

    def update(self, **_kwargs: Any) -> Never:
        """Refuse: see AppendOnlyError."""
        raise AppendOnlyError

    def delete(self) -> Never:
        """Refuse: see AppendOnlyError."""
        raise AppendOnlyError

    def bulk_update(self, *_args: Any, **_kwargs: Any) -> Never:
        """Refuse: see AppendOnlyError."""
        raise AppendOnlyError

    def bulk_create(self, *_args: Any, **_kwargs: Any) -> Never:
        """Refuse: one answer, one record; conflict options would turn an insert into an update."""
        raise AppendOnlyError

    delete.alters_data = True  # type: ignore[attr-defined]  # a mark that templates read
    update.alters_data = True  # type: ignore[attr-defined]  # a mark that templates read


def _page(events: list[AuditEvent], *, newer: bool, older: bool) -> Page:
    return Page(
        events=tuple(events),
        newer=events[0].id if newer and events else "",
        older=events[-1].id if older and events else "",
    )


class AuditEvent(models.Model):
    """One answer to one admission request, complete in itself: names as text, no foreign keys.

    ``request`` is the AdmissionRequest as judged, redacted (``redaction``): enough to judge again.
    ``reasons`` and ``policy_names`` repeat what is in the JSON columns as words between spaces,
    because SQLite cannot search JSON lists.
    """

    id = models.CharField("decision", max_length=16, primary_key=True, editable=False)
    created = models.DateTimeField("time")
    duration_us = models.PositiveBigIntegerField("duration (µs)")
    cluster = models.CharField(max_length=253)
    phase = models.CharField(max_length=8)
    request_uid = models.CharField("request UID", max_length=253, db_index=True)
    operation = models.CharField(max_length=16, blank=True)
    api_group = models.CharField("API group", max_length=253, blank=True)
    kind = models.CharField(max_length=253, blank=True)
    resource = models.CharField(max_length=253, blank=True)
    sub_resource = models.CharField(max_length=253, blank=True)
    namespace = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=253, blank=True)
    object_uid = models.CharField("object UID", max_length=253, blank=True)
    user = models.CharField(max_length=253, blank=True)
    groups = models.JSONField(default=list)
    dry_run = models.BooleanField(default=False)
    client = models.CharField(max_length=253, blank=True)
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    code = models.PositiveSmallIntegerField()
    reason = models.CharField("status reason", max_length=64, blank=True)
    message = models.TextField(blank=True)
    reasons = models.TextField(blank=True)
    policy_revision = models.BigIntegerField(default=0)
    policies = models.JSONField(default=list)
    policy_names = models.TextField(blank=True)
    violations = models.JSONField(default=list)
    observed = models.JSONField(default=list)
    trace = models.JSONField(default=list)
    patch = models.JSONField(default=list)
    warnings = models.JSONField(default=list)
    charges = models.JSONField(default=list)
    request = models.JSONField(default=dict)

    objects = AuditEventQuerySet.as_manager()

    class Meta:
        """Newest first; an index for each way the list is asked."""

        verbose_name = "decision"
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["cluster", "namespace", "id"], name="audit_where"),
            models.Index(fields=["verdict", "id"], name="audit_verdict"),
            models.Index(fields=["namespace", "name", "id"], name="audit_object"),
            models.Index(fields=["user", "id"], name="audit_user"),
            models.Index(fields=["created"], name="audit_created"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(verdict__in=Verdict.values), name="audit_known_verdict"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.verdict} {self.target}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert once.

        Raises:
            AppendOnlyError: if the row exists.
        """
        if not self._state.adding:
            raise AppendOnlyError
        kwargs["force_insert"] = True
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> Never:
        """Refuse: see AppendOnlyError."""
        raise AppendOnlyError

    @property
    def target(self) -> str:
        """``namespace/name`` or the name alone, for people."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def allowed(self) -> bool:
        """Tell whether the request was let through."""
        return self.verdict != Verdict.DENIED
