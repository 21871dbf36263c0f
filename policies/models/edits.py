"""Tables PolicyRevision (append-only: never saved again), KeptDraft, ObjectManagers."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn

from django.conf import settings
from django.db import models
from django.db.models import Q

from policies.managed_fields import GIT, FieldManager


class AppendOnlyError(TypeError):
    """An attempt to change or delete a recorded revision."""


class PolicyRevisionQuerySet(models.QuerySet["PolicyRevision"]):
    """Revisions by their object; they cannot be changed or deleted."""

    def of(
        self, *, cluster: str, kind: str, name: str, namespace: str = ""
    ) -> PolicyRevisionQuerySet:
        """All revisions of one object."""
        return self.filter(cluster=cluster, kind=kind, name=name, namespace=namespace)

    def update(self, **_kwargs: Any) -> NoReturn:
        """Refuse an update."""
        raise AppendOnlyError("policy revisions are never changed")

    def delete(self) -> NoReturn:
        """Refuse a deletion."""
        raise AppendOnlyError("policy revisions are never deleted")


class PolicyRevision(models.Model):
    """One write of one object.

    Names are stored as text, so that a revision outlives its object. The database's own triggers
    refuse what the methods here refuse, for writes that bypass Django.
    """

    class Action(models.TextChoices):
        """The kind of write."""

        CREATE = "create"
        UPDATE = "update"
        DELETE = "delete"
        RESTORE = "restore"
        ISSUE = "issue"
        REVOKE = "revoke"

    cluster = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)
    kind = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=36, blank=True)
    number = models.PositiveBigIntegerField()
    action = models.CharField(max_length=8, choices=Action)
    user = models.CharField(max_length=254)
    manager = models.CharField(max_length=260, blank=True, editable=False)
    commit = models.CharField(max_length=64, blank=True, editable=False)
    reason = models.TextField(blank=True)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    cluster_revision = models.PositiveBigIntegerField(default=0, editable=False)

    objects = PolicyRevisionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["created"], name="policyrevision_created"),
            # For the latest changes of a namespace.
            models.Index(
                fields=["cluster", "namespace", "created", "id"], name="policyrevision_by_place"
            ),
            # For snapshots, which read the writes since their revision.
            models.Index(fields=["cluster", "cluster_revision"], name="policyrevision_by_count"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "namespace", "name", "number"],
                name="policyrevision_number_once",
            ),
            models.CheckConstraint(condition=Q(number__gte=1), name="policyrevision_counts"),
            models.CheckConstraint(
                condition=Q(
                    action__in=["create", "update", "delete", "restore", "issue", "revoke"]
                ),
                name="policyrevision_action_known",
            ),
        ]

    def __str__(self) -> str:
        revised_place = f"{self.cluster}/{self.namespace}" if self.namespace else self.cluster
        return f"{self.kind} {revised_place}/{self.name} #{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert; a stored revision cannot be saved again."""
        if not self._state.adding:
            raise AppendOnlyError("policy revisions are never changed")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse a deletion."""
        raise AppendOnlyError("policy revisions are never deleted")

    @property
    def set_and_commit(self) -> str:
        """The field manager of a set, and its commit; empty for writes of people and clusters."""
        if not self.manager.startswith(GIT):
            return ""
        return str(FieldManager(manager=self.manager, commit=self.commit))


MOST_DRAFTS: Final = 20
"""So many drafts of one person are kept; a further one replaces the oldest."""


class KeptDraft(models.Model):
    """The unsaved text of one editor; ``seen`` is the policy's revision when editing began."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="kept_drafts")
    cluster = models.ForeignKey("policies.Cluster", models.CASCADE, related_name="+")
    namespace = models.CharField(max_length=63, blank=True)
    kind = models.CharField(max_length=63)
    name = models.CharField(max_length=253, blank=True)
    text = models.TextField()
    seen = models.PositiveBigIntegerField(default=0)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "cluster", "namespace", "kind", "name"], name="kept_draft_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name or '(new)'} of {self.user}"


class ObjectManagers(models.Model):
    """The managers of one object's fields, by path, and the set that the object belongs to.

    A deleted object of a set keeps its row, so that the set does not bring it back in silence.
    """

    cluster = models.ForeignKey("policies.Cluster", models.CASCADE, related_name="+")
    namespace = models.CharField(max_length=63, blank=True)
    kind = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    set = models.CharField(max_length=63, blank=True)
    fields = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "namespace", "name"], name="object_managers_once"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["cluster", "set"], name="object_managers_of_set"),
        ]

    def __str__(self) -> str:
        return f"managers of {self.kind} {self.namespace}/{self.name}"
