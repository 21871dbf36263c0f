"""Tables ApprovalRule (when a change needs approvers of which role) and its ApprovalRuleChanges."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q

from policies.change_sets.approvals.terms import APPROVING_ROLES, MOST_APPROVERS, RuleTerms
from policies.models.edits import AppendOnlyError
from policies.models.roles import NAMESPACES

KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")
MOST_NAMED: Final = 100
"""Clusters, or namespaces, that one rule names."""
_LONGEST_CLUSTER: Final = 63
_LARGEST: Final = 1_000_000


def _check_names(value: Any, *, longest: int) -> None:
    is_list = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
    if not is_list or any(len(each) > longest for each in value):
        message = f"must be names of at most {longest} characters"
        raise ValidationError(message, code="invalid")
    if len(value) > MOST_NAMED:
        raise ValidationError(f"must be at most {MOST_NAMED}", code="too_many")


def check_kinds(value: Any) -> None:
    """Refuse other kinds than those of policies."""
    _check_names(value, longest=max(map(len, KINDS)))
    if unknown := sorted(set(value) - set(KINDS)):
        message = f"{unknown[0]} is none of: {', '.join(KINDS)}"
        raise ValidationError(message, code="unknown_kind")


def check_clusters(value: Any) -> None:
    """Refuse what is no list of names; a cluster may come later than its rule."""
    _check_names(value, longest=_LONGEST_CLUSTER)


def check_namespaces(value: Any) -> None:
    """Refuse what is no list of namespaces, each a name, or a prefix and ``*``."""
    _check_names(value, longest=_LONGEST_CLUSTER)
    for each in value:
        NAMESPACES(each)


def _threshold(help_text: str) -> Any:
    return models.PositiveIntegerField(
        null=True, blank=True, validators=[MaxValueValidator(_LARGEST)], help_text=help_text
    )


class ApprovalRule(models.Model):
    """When a change needs approvals, of whom, and whether its checks must be green.

    Empty lists stand for all. Of the causes, from ``deletes`` to ``red_tests_over``, any one is
    enough; a rule without one takes effect wherever it looks. Rules are asked in the order of
    ``position``, and all of them must be met.
    """

    name = models.CharField(max_length=100, unique=True)
    position = models.PositiveIntegerField(default=0, editable=False)
    enabled = models.BooleanField(default=True)
    kinds = models.JSONField(default=list, blank=True, validators=[check_kinds])
    clusters = models.JSONField(default=list, blank=True, validators=[check_clusters])
    namespaces = models.JSONField(default=list, blank=True, validators=[check_namespaces])
    deletes = models.BooleanField(default=False, help_text="an object is deleted")
    enforces = models.BooleanField(default=False, help_text="an object is set to enforce")
    below_used = models.BooleanField(
        default=False, help_text="a hard value is set below what is used"
    )
    flips_over = _threshold("more verdicts of the replay than this would differ")
    restarts_over = _threshold("more running pods than this could not restart")
    namespaces_over = _threshold("it changes more namespaces than this")
    red_tests_over = _threshold("more kept tests than this would be red")
    approvers = models.PositiveSmallIntegerField(
        default=1, validators=[MaxValueValidator(MOST_APPROVERS)]
    )
    role = models.CharField(
        max_length=8, default="approver", choices=[(each, each) for each in APPROVING_ROLES]
    )
    for_each_namespace = models.BooleanField(
        default=True, help_text="so many for each namespace, and not for all of them together"
    )
    checks_green = models.BooleanField(default=False, help_text="no check may fail or wait")
    revision = models.PositiveBigIntegerField(default=0, editable=False)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["position", "pk"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(name=""), name="approvalrule_has_a_name"),
            models.CheckConstraint(
                condition=Q(role__in=list(APPROVING_ROLES)), name="approvalrule_role_known"
            ),
            models.CheckConstraint(
                condition=Q(approvers__lte=MOST_APPROVERS), name="approvalrule_few_approvers"
            ),
            models.CheckConstraint(
                condition=Q(approvers__gt=0) | Q(checks_green=True),
                name="approvalrule_asks_for_something",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Require that the rule asks for something."""
        if not self.approvers and not self.checks_green:
            message = "a rule without approvers has to ask for green checks"
            raise ValidationError({"approvers": ValidationError(message, code="asks_nothing")})

    @property
    def terms(self) -> RuleTerms:
        """The rule as a value."""
        named: dict[str, Any] = {
            name: tuple(getattr(self, name)) for name in ("kinds", "clusters", "namespaces")
        }
        alike = ("name", "approvers", "role", *CAUSES, "for_each_namespace", "checks_green")
        return RuleTerms(**named | {name: getattr(self, name) for name in alike})

    def to_json(self) -> dict[str, Any]:
        """What history keeps of it."""
        return {name: getattr(self, name) for name in ("position", *TERMS)}


CAUSES: Final = (
    "deletes",
    "enforces",
    "below_used",
    "flips_over",
    "restarts_over",
    "namespaces_over",
    "red_tests_over",
)
TERMS: Final = (
    "name",
    "enabled",
    "kinds",
    "clusters",
    "namespaces",
    *CAUSES,
    "approvers",
    "role",
    "for_each_namespace",
    "checks_green",
)
"""What people set of a rule."""


class ApprovalRuleChange(models.Model):
    """One write of a rule: as it was before, and after. Append-only, by the database as well."""

    class Action(models.TextChoices):
        """What was done."""

        CREATED = "created"
        CHANGED = "changed"
        MOVED = "moved"
        DELETED = "deleted"

    created = models.DateTimeField(auto_now_add=True)
    action = models.CharField(max_length=7, choices=Action)
    rule = models.CharField(max_length=100)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    actor = models.CharField(max_length=254)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"{self.rule}: {self.action} by {self.actor}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert; a stored row cannot be saved again."""
        if not self._state.adding:
            raise AppendOnlyError("changes of approval rules are never changed")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse a deletion."""
        raise AppendOnlyError("changes of approval rules are never deleted")
