"""Tables RoleBinding of a user or group (role, scope, names ending in *) and RoleChange history."""

from __future__ import annotations

from typing import ClassVar, Final

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

PREFIX: Final = "*"
"""At the end of a namespace's name: all namespaces with this prefix, later ones included."""
NAMESPACES: Final = RegexValidator(
    r"\A[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z|\A[a-z0-9][-a-z0-9]*\*\Z",
    "a namespace's name, or a prefix and *",
)

Scope = tuple[str, str]
"""A cluster and a namespace or prefix; an empty name means all."""


def scope_covers(scope: Scope, cluster: str, namespace: str) -> bool:
    """Whether a place lies in a scope; without a namespace: the cluster as a whole."""
    if scope[0] not in ("", cluster):
        return False
    if scope[1].endswith(PREFIX):
        return namespace.startswith(scope[1].removesuffix(PREFIX))
    return scope[1] in ("", namespace)


def scope_within(narrow: Scope, wide: Scope) -> bool:
    """Whether a scope lies in another one as a whole."""
    is_same_cluster = wide[0] in ("", narrow[0])
    return is_same_cluster and _is_within(narrow[1], wide[1])


def scope_overlap(one: Scope, other: Scope) -> Scope | None:
    """The scope that lies in both; None if none does."""
    clusters = {one[0], other[0]} - {""}
    if len(clusters) > 1:
        return None
    # Names and beginnings of names never overlap in part: one lies in the other, or both are apart.
    for narrow, wide in ((one[1], other[1]), (other[1], one[1])):
        if _is_within(narrow, wide):
            return (clusters.pop() if clusters else "", narrow)
    return None


def _is_within(narrow: str, wide: str) -> bool:
    if wide.endswith(PREFIX):
        return narrow.startswith(wide.removesuffix(PREFIX))
    return wide in ("", narrow)


def scope_in_words(cluster: str, namespace: str) -> str:
    """A scope for people."""
    clusters = cluster or "every cluster"
    return f"{clusters}, namespace {namespace}" if namespace else clusters


class RoleBinding(models.Model):
    """A role of one subject in one scope; an empty name means every cluster, or every namespace.

    Names are text, not foreign keys: a binding may be older than its cluster or namespace.
    A scope without a namespace also covers what belongs to the cluster as a whole.
    """

    class Role(models.TextChoices):
        """The roles, from the least; each may also see what is in its scope."""

        VIEWER = "viewer"
        AUDITOR = "auditor"
        EDITOR = "editor"
        APPROVER = "approver"
        ADMIN = "admin"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="role_bindings",
    )
    group = models.ForeignKey(
        Group, models.CASCADE, null=True, blank=True, related_name="role_bindings"
    )
    role = models.CharField(max_length=8, choices=Role)
    cluster = models.CharField(
        max_length=253, blank=True, help_text="A cluster's name; empty for every cluster."
    )
    namespace = models.CharField(
        max_length=63,
        blank=True,
        help_text="A namespace's name, or a prefix and *; empty for every namespace.",
        validators=[NAMESPACES],
    )
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150, editable=False)

    class Meta:
        ordering: ClassVar = ["user__username", "group__name", "cluster", "namespace", "role"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(user=None, group__isnull=False) | Q(user__isnull=False, group=None),
                name="role_binding_has_one_subject",
            ),
            models.CheckConstraint(
                condition=Q(role__in=["viewer", "auditor", "editor", "approver", "admin"]),
                name="role_binding_role_known",
            ),
            # Two constraints: NULL never equals NULL in a unique index.
            models.UniqueConstraint(
                fields=["user", "role", "cluster", "namespace"],
                condition=Q(group=None),
                name="role_binding_once_per_user",
            ),
            models.UniqueConstraint(
                fields=["group", "role", "cluster", "namespace"],
                condition=Q(user=None),
                name="role_binding_once_per_group",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject}: {self.role} in {self.scope}"

    def clean(self) -> None:
        """Require exactly one subject."""
        if (self.user is None) == (self.group is None):
            raise ValidationError("Name a user or a group, not both.", code="one_subject")

    @property
    def subject(self) -> str:
        """The name of the user or group."""
        return f"group {self.group}" if self.group else str(self.user)

    @property
    def scope(self) -> str:
        """The scope in words."""
        return scope_in_words(self.cluster, self.namespace)

    def covers(self, cluster: str, namespace: str) -> bool:
        """Whether a place lies in the scope; without a namespace: the cluster as a whole."""
        return scope_covers((self.cluster, self.namespace), cluster, namespace)


class RoleChange(models.Model):
    """One role granted or revoked. Rows are only added; the database refuses other changes."""

    class Action(models.TextChoices):
        """Whether the role was granted or revoked."""

        GIVEN = "given"
        TAKEN = "taken back"

    created = models.DateTimeField(auto_now_add=True)
    action = models.CharField(max_length=10, choices=Action.choices)
    subject = models.CharField(max_length=160)
    role = models.CharField(max_length=8)
    cluster = models.CharField(max_length=253, blank=True)
    namespace = models.CharField(max_length=63, blank=True)
    actor = models.CharField(max_length=150)

    class Meta:
        ordering: ClassVar = ["-created", "-pk"]

    def __str__(self) -> str:
        return f"{self.action}: {self.subject}: {self.role} in {self.scope}"

    @property
    def scope(self) -> str:
        """The scope in words."""
        return scope_in_words(self.cluster, self.namespace)
