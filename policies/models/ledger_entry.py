"""Table LedgerEntry, the ledger's journal: one row for each change of a charge. Append-only."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from django.db import models
from django.db.models.functions import Now

from policies.models.cluster import Cluster
from policies.models.edits import AppendOnlyError


class LedgerEntryQuerySet(models.QuerySet["LedgerEntry"]):
    """Entries, which cannot be changed or deleted."""

    def update(self, **_kwargs: Any) -> NoReturn:
        """Refuse an update."""
        raise AppendOnlyError("entries of the ledger's journal are never changed")

    def delete(self) -> NoReturn:
        """Refuse a deletion; ``policies.ledger.entries.forget`` removes what is too old."""
        raise AppendOnlyError("entries of the ledger's journal are never deleted")


class LedgerEntry(models.Model):
    """One change of what a quota is charged for an object; all ids of a quota are in its order.

    ``before`` and ``after`` are the amounts that counted; nothing of a released charge counts. In a
    recount they are the quota's used amounts, and no object is named. The time is the database's.
    The database's own triggers refuse what the methods refuse.
    """

    class Action(models.TextChoices):
        """What was done to the charge."""

        CHARGE = "charge", "charged"
        ADD = "add", "added"
        CONFIRM = "confirm", "confirmed"
        RESIZE = "resize", "resized"
        RELEASE = "release", "released"
        OPENING = "opening", "opening balance set"
        RECOUNT = "recount", "recounted"

    class Cause(models.TextChoices):
        """Who or what led to it; ``reference`` names it more closely."""

        ADMISSION = "admission", "admitted"
        WATCH = "watch", "seen in the cluster"
        LIST = "list", "compared with a list of the cluster"
        LEASE = "lease", "never seen before its lease ended"
        FIGURES = "figures", "figure of the cluster"
        RECOUNT = "recount", "recount"
        PERSON = "person", "by hand"
        UPGRADE = "upgrade", "held when the journal began"

    # The journal outlives its cluster.
    cluster = models.ForeignKey(
        Cluster, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    quota_uid = models.UUIDField()
    namespace = models.CharField(max_length=63)
    resource = models.CharField(max_length=317, blank=True)
    object_uid = models.CharField(max_length=128, blank=True)
    object_name = models.CharField(max_length=253, blank=True)
    action = models.CharField(max_length=7, choices=Action)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    cause = models.CharField(max_length=9, choices=Cause)
    reference = models.CharField(
        max_length=253, blank=True, help_text="ID of the decision, or the user"
    )
    created = models.DateTimeField(db_default=Now(), editable=False)

    objects = LedgerEntryQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-id"]
        verbose_name = "ledger entry"
        verbose_name_plural = "ledger entries"
        indexes: ClassVar = [
            models.Index(fields=["quota_uid", "cluster", "id"], name="ledgerentry_by_quota")
        ]

    def __str__(self) -> str:
        return f"{self.resource} {self.object_name or self.object_uid}: {self.action}"
