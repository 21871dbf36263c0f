"""Tables ApiToken (knox's token with name, access, scope, last use) and ServiceAccount."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from knox.models import AbstractAuthToken

from policies.models.roles import NAMESPACES, scope_covers, scope_in_words


class ApiToken(AbstractAuthToken):  # type: ignore[misc]  # knox has no types
    """A token of a user; it limits what the user's roles grant, and never grants more.

    Only the digest of its secret is stored. As in role bindings, an empty name means every cluster,
    or every namespace.
    """

    class Access(models.TextChoices):
        """Whether requests with the token may change anything."""

        READ = "read"
        WRITE = "write"

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=100)
    access = models.CharField(max_length=5, choices=Access, default=Access.READ)
    cluster = models.CharField(
        max_length=253, blank=True, help_text="A cluster's name; empty for every cluster."
    )
    namespace = models.CharField(
        max_length=63,
        blank=True,
        help_text="A namespace's name, or a prefix and *; empty for every namespace.",
        validators=[NAMESPACES],
    )
    created_by = models.CharField(max_length=150, blank=True, editable=False)
    last_used = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering: ClassVar = ["-created", "pk"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(access__in=["read", "write"]), name="api_token_access_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.access} in {self.scope}"

    @property
    def is_read_only(self) -> bool:
        """Whether requests with it may change nothing."""
        return bool(self.access == self.Access.READ)

    @property
    def scope(self) -> str:
        """The scope in words."""
        return scope_in_words(self.cluster, self.namespace)

    def covers(self, cluster: str, namespace: str) -> bool:
        """Whether a place lies in the scope; without a cluster: the whole fleet."""
        if not cluster:
            return not (self.cluster or self.namespace)
        return scope_covers((self.cluster, self.namespace), cluster, namespace)


class ServiceAccount(models.Model):
    """An account of a program: its user has no password and signs in nowhere, only with tokens."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="service_account"
    )
    description = models.CharField(max_length=200, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150, editable=False)

    class Meta:
        ordering: ClassVar = ["user__username"]

    def __str__(self) -> str:
        return str(self.user)

    @property
    def name(self) -> str:
        """The name by which roles and the record know it."""
        return self.user.get_username()
