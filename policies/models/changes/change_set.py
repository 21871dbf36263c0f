"""Tables ChangeSet, its ChangeItems (what is proposed) and ChangeSteps (append-only)."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn

from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, URLValidator
from django.db import models
from django.db.models import Q

from policies.change_sets.content import ProposedContent
from policies.change_sets.states import ChangeState, StepKind, steps_from
from policies.models.edits import AppendOnlyError

MOST_ITEMS: Final = 2_000
"""So many objects fit one change set, as they fit one import."""
LONGEST_NOTE: Final = 10_000
"""Characters of the longest reason or comment."""
_LINKS: Final = URLValidator(schemes=["http", "https"])


def _choices(words: type[ChangeState | StepKind]) -> list[tuple[str, str]]:
    return [(each.value, each.value.replace("_", " ")) for each in words]


def check_ticket(ticket: str) -> None:
    """Refuse a ticket that looks like a link and is none that a page may show as one."""
    if ":" in ticket:
        try:
            _LINKS(ticket)
        except ValidationError:
            message = "must be a link with http or https, or a key such as PLAT-2214"
            raise ValidationError(message, code="invalid_ticket") from None


class ChangeSet(models.Model):
    """Proposed writes of policies that are reviewed and published together; its number is the id.

    ``content_hash`` is that of its items. Names are text, so that it outlives accounts.
    ``unreviewed``: it was published without approvals, and nobody else has reviewed it yet.
    """

    title = models.CharField(max_length=200)
    reason = models.TextField(blank=True, validators=[MaxLengthValidator(LONGEST_NOTE)])
    ticket = models.CharField(max_length=500, blank=True, validators=[check_ticket])
    author = models.CharField(max_length=254, editable=False)
    state = models.CharField(
        max_length=16, choices=_choices(ChangeState), default=ChangeState.DRAFT.value
    )
    content_hash = models.CharField(max_length=64, editable=False)
    unreviewed = models.BooleanField(default=False, editable=False)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["state", "-id"], name="changeset_by_state"),
            models.Index(fields=["-id"], condition=Q(unreviewed=True), name="changeset_unreviewed"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(title=""), name="changeset_has_a_title"),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in ChangeState]),
                name="changeset_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"change #{self.pk}"

    @property
    def stands(self) -> ChangeState:
        """Its state."""
        return ChangeState(self.state)

    @property
    def steps_allowed(self) -> tuple[StepKind, ...]:
        """The steps that its state allows; a review only where one is waited for."""
        allowed = steps_from(self.stands)
        return tuple(each for each in allowed if each is not StepKind.REVIEW or self.unreviewed)

    @property
    def has_link(self) -> bool:
        """Whether the ticket is a link, and no mere key."""
        return self.ticket.startswith(("https://", "http://"))


class ChangeItem(models.Model):
    """One object of a change set as it shall be; no content deletes it.

    ``base`` is what the content was made from, none for a new object. ``written`` is the revision
    that publishing wrote; null before, and where the object was as wanted already. ``manager`` is
    the field manager of a set that proposed it, with its commit; empty for whoever publishes it.
    ``wave`` is the one of a roll-out that began; null before.
    """

    change = models.ForeignKey(ChangeSet, models.CASCADE, related_name="items")
    cluster = models.CharField(max_length=63)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    base_revision = models.PositiveBigIntegerField(default=0)
    base = models.JSONField(null=True, blank=True)
    content = models.JSONField(null=True, blank=True)
    written = models.PositiveBigIntegerField(null=True, blank=True)
    manager = models.CharField(max_length=260, blank=True)
    commit = models.CharField(max_length=200, blank=True)
    wave = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["cluster", "namespace", "kind", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["change", "cluster", "kind", "namespace", "name"], name="changeitem_once"
            ),
            models.CheckConstraint(
                condition=Q(base__isnull=False) | Q(content__isnull=False),
                name="changeitem_proposes_something",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["cluster", "namespace"], name="changeitem_by_place"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name} of {self.cluster}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name of the object."""
        return self.kind, self.namespace, self.name

    @property
    def action(self) -> str:
        """What publishing does to the object; the word that permissions have for it."""
        if self.content is None:
            return "delete"
        return "change" if self.base is not None else "add"

    def to_content(self) -> ProposedContent:
        """The item as a value."""
        return ProposedContent(
            cluster=self.cluster,
            kind=self.kind,
            namespace=self.namespace,
            name=self.name,
            base_revision=self.base_revision,
            base=self.base,
            content=self.content,
        )


class ChangeStep(models.Model):
    """One step of a change set, with the content that it was about. Append-only.

    The database's own triggers refuse what the methods here refuse.
    """

    change = models.ForeignKey(ChangeSet, models.PROTECT, related_name="steps")
    step = models.CharField(max_length=16, choices=_choices(StepKind))
    state_before = models.CharField(max_length=16)
    state_after = models.CharField(max_length=16)
    user = models.CharField(max_length=254)
    note = models.TextField(blank=True)
    content_hash = models.CharField(max_length=64)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(step__in=[step.value for step in StepKind]), name="changestep_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.step} of change #{self.change_id}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert; a stored step cannot be saved again."""
        if not self._state.adding:
            raise AppendOnlyError("steps of changes are never changed")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse a deletion."""
        raise AppendOnlyError("steps of changes are never deleted")
