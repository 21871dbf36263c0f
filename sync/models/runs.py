"""Tables SyncState, SyncRun, SyncResult, SyncCursor, SyncedObject, SyncOwnership: columns alone.

Shape only. These rows are the truth; the broker's messages only make workers look at them.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from policies.models.cluster import Cluster
from sync.values import ObjectKey


class SyncState(models.Model):
    """One cluster's lease and timetable: its worker, the last passes, and the next one.

    ``epoch`` counts the holders; a holder of an older epoch may not write. Times are the
    database's.
    """

    cluster = models.OneToOneField(Cluster, models.CASCADE, related_name="sync_state")
    epoch = models.PositiveBigIntegerField(default=0)
    holder = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    due = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    last_success = models.DateTimeField(null=True, blank=True)
    last_full_pass = models.DateTimeField(null=True, blank=True)
    stale_since = models.DateTimeField(null=True, blank=True)
    policy_revision = models.PositiveBigIntegerField(
        default=0, help_text="of the cluster when its policies were last compared"
    )

    def __str__(self) -> str:
        return f"{self.cluster} #{self.epoch}"


class SyncCursor(models.Model):
    """The resource version from which the next watch of a kind continues."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="sync_cursors")
    kind = models.CharField(max_length=63)
    resource_version = models.CharField(max_length=100)
    listed = models.DateTimeField(help_text="when the last complete list began")
    empty_lists = models.PositiveIntegerField(
        default=0, help_text="consecutive complete lists with none of the known objects"
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "kind"], name="synccursor_once"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.kind} {self.resource_version}"


class SyncOwnership(models.Model):
    """A part of a cluster that the portal may write; an empty field stands for all."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="sync_ownerships")
    namespace = models.CharField(max_length=63, blank=True)
    kind = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253, blank=True)
    user = models.CharField(max_length=254)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "kind", "name"], name="syncownership_once"
            ),
            # An object has a kind and a name; a namespace or a whole cluster has neither.
            models.CheckConstraint(
                condition=Q(kind="", name="") | ~Q(kind="") & ~Q(name=""),
                name="syncownership_names_an_object_in_full",
            ),
        ]

    def __str__(self) -> str:
        return "/".join(filter(None, (str(self.cluster), self.namespace, self.kind, self.name)))


class SyncedObject(models.Model):
    """An object on both sides: the last agreed manifest, the cluster's, and the verdict.

    Our side is the stored policy; ``base`` and ``theirs`` are manifests in normal form, null for
    none. ``differences`` are ``{field, base, ours, theirs, manager, time}``.
    """

    class State(models.TextChoices):
        """The result of the comparison."""

        IN_SYNC = "in-sync"
        PENDING = "pending"
        DRIFTED = "drifted"
        CONFLICT = "conflict"
        UNOWNED = "unowned"
        HELD = "held"

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="synced_objects")
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    object_uid = models.CharField(max_length=64, blank=True)
    resource_version = models.CharField(max_length=100, blank=True)
    base = models.JSONField(null=True, blank=True)
    theirs = models.JSONField(null=True, blank=True)
    live = models.JSONField(null=True, blank=True, help_text="as the API server returned it")
    state = models.CharField(max_length=8, choices=State)
    differences = models.JSONField(default=list, blank=True)
    since = models.DateTimeField(help_text="when this state was first seen")
    seen = models.DateTimeField(help_text="when the object was last compared")
    gone = models.DateTimeField(
        null=True, blank=True, help_text="of a tombstone: when both sides had deleted the object"
    )
    version = models.PositiveIntegerField(
        default=0, help_text="number of resolutions; a pass that read a lower one gives way"
    )

    class Meta:
        indexes: ClassVar = [models.Index(fields=["cluster", "state"], name="syncedobject_state")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "namespace", "name"], name="syncedobject_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.kind} {self.namespace}/{self.name}: {self.state}"

    @property
    def key(self) -> ObjectKey:
        """The identity of the object."""
        return ObjectKey(self.kind, self.namespace, self.name)


class SyncRun(models.Model):
    """One pass or watch over a cluster: its trigger, progress and result."""

    class State(models.TextChoices):
        """Its place in the life cycle."""

        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        HELD = "held"
        PARKED = "parked"

    class Mode(models.TextChoices):
        """What it may write, and where."""

        IMPORT = "import"
        SYNC = "sync"
        PREVIEW = "preview"
        WATCH = "watch"

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="sync_runs")
    mode = models.CharField(max_length=7, choices=Mode)
    trigger = models.CharField(max_length=20, help_text="schedule, person, policy or watch")
    user = models.CharField(max_length=254, blank=True)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    epoch = models.PositiveBigIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0)
    queued = models.DateTimeField(
        null=True, blank=True, help_text="when a worker was last notified"
    )
    confirmed_by = models.CharField(
        max_length=254, blank=True, help_text="who confirmed the held deletions"
    )
    stage = models.CharField(max_length=100, blank=True)
    total = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True, blank=True)
    heartbeat = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [models.Index(fields=["cluster", "state"], name="syncrun_state")]
        constraints: ClassVar = [
            # Requests join the waiting run of their mode, also when several come at once.
            models.UniqueConstraint(
                fields=["cluster", "mode"],
                condition=Q(state="waiting"),
                name="syncrun_waits_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.mode} {self.created:%Y-%m-%d %H:%M:%S}: {self.state}"

    @property
    def seconds(self) -> float | None:
        """How long it took; None before its end."""
        if self.started is None or self.finished is None:
            return None
        return (self.finished - self.started).total_seconds()


class SyncResult(models.Model):
    """A run's action on one object; the row exists before the write to the cluster."""

    class Outcome(models.TextChoices):
        """How it ended."""

        INTENDED = "intended"
        DONE = "done"
        FAILED = "failed"
        CONFLICT = "conflict"
        HELD = "held"

    run = models.ForeignKey(SyncRun, models.CASCADE, related_name="results")
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    action = models.CharField(max_length=10)
    outcome = models.CharField(max_length=8, choices=Outcome)
    message = models.TextField(blank=True)
    differences = models.JSONField(default=list, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["id"]
        constraints: ClassVar = [
            # A run that begins again after a lost worker finds its intents here.
            models.UniqueConstraint(
                fields=["run", "kind", "namespace", "name"], name="syncresult_once_per_run"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.kind} {self.namespace}/{self.name}: {self.outcome}"
