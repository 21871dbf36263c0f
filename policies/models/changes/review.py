"""Tables ChangeApproval (append-only), ChangeCheck of a content, ChangeLook of each reader."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn

from django.conf import settings
from django.db import models
from django.db.models import Q

from policies.change_sets.approvals.checks import (
    BY_WORKER,
    IN_WORDS,
    CheckKind,
    CheckResult,
    CheckState,
)
from policies.models.changes.change_set import ChangeSet, ChangeStep
from policies.models.edits import AppendOnlyError

LONGEST_WORDS: Final = 500


class ChangeApproval(models.Model):
    """What an approval was worth: ``grants`` are cluster, namespace and role. Append-only.

    Who, when and of which content is in its step.
    """

    step = models.OneToOneField(ChangeStep, models.PROTECT, related_name="approval")
    grants = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"approval of {self.step}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert; a stored approval cannot be saved again."""
        if not self._state.adding:
            raise AppendOnlyError("approvals are never changed")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse a deletion."""
        raise AppendOnlyError("approvals are never deleted")


class ChangeCheck(models.Model):
    """The last check of one kind, and the content that it was about.

    One of a worker counts what was found since ``asked``.
    """

    change = models.ForeignKey(ChangeSet, models.CASCADE, related_name="checks")
    kind = models.CharField(max_length=8, choices=[(each.value, each.value) for each in CheckKind])
    content_hash = models.CharField(max_length=64)
    state = models.CharField(
        max_length=7, choices=[(each.value, each.value) for each in CheckState]
    )
    number = models.PositiveIntegerField(null=True, blank=True)
    words = models.CharField(max_length=LONGEST_WORDS, blank=True)
    user = models.CharField(max_length=254)
    asked = models.DateTimeField()
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["change", "kind"], name="changecheck_once"),
            models.CheckConstraint(
                condition=Q(kind__in=[each.value for each in CheckKind]), name="changecheck_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=[each.value for each in CheckState]),
                name="changecheck_state_known",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["change"], condition=Q(state="waiting"), name="changecheck_waiting"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.change}: {self.state}"

    @property
    def title(self) -> str:
        """Its kind, as a heading."""
        return IN_WORDS[CheckKind(self.kind)].capitalize()

    @property
    def is_by_worker(self) -> bool:
        """Whether a worker carries it out."""
        return self.kind in BY_WORKER

    @property
    def result(self) -> CheckResult:
        """The check as a value."""
        return CheckResult(
            kind=CheckKind(self.kind),
            state=CheckState(self.state),
            number=self.number,
            words=self.words,
        )


class ChangeLook(models.Model):
    """The content of a change that a user saw last, and the one before.

    ``seen`` and ``before`` are digests of contents by digests of the objects' names.
    """

    change = models.ForeignKey(ChangeSet, models.CASCADE, related_name="looks")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    content_hash = models.CharField(max_length=64)
    seen = models.JSONField(default=dict)
    before = models.JSONField(null=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["change", "user"], name="changelook_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.change}"
