"""Tables of namespace classes: NamespaceClass, its versions, its members and their policies."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self

from django.db import models
from django.db.models import Q

from engine.namespace_class import (
    NamespaceClass as EngineClass,
)
from engine.namespace_class import (
    decode_namespace_class,
)
from policies.models.cluster import Namespace
from policies.models.edits import AppendOnlyError


class NamespaceClass(models.Model):
    """The policies that matching namespaces get; of the whole fleet. Each save is a version."""

    kind: ClassVar[str] = "NamespaceClass"

    name = models.CharField(max_length=63, unique=True)
    version = models.PositiveBigIntegerField(default=1, editable=False)
    manifest = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name"]
        verbose_name_plural = "namespace classes"
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(name=""), name="namespaceclass_has_a_name"),
            models.CheckConstraint(condition=Q(version__gte=1), name="namespaceclass_counts"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def value(self) -> EngineClass:
        """The class as the engine reads it."""
        return decode_namespace_class(self.manifest)

    def to_manifest(self) -> dict[str, Any]:
        """The class as a manifest."""
        manifest: dict[str, Any] = self.manifest
        return manifest

    def read_manifest(self, manifest: dict[str, Any]) -> Self:
        """Take over a checked manifest."""
        self.name = manifest["metadata"]["name"]
        self.manifest = manifest
        return self


class NamespaceClassVersion(models.Model):
    """One write of a class; names are text, so that a version outlives its class. Append-only."""

    name = models.CharField(max_length=63)
    number = models.PositiveBigIntegerField()
    user = models.CharField(max_length=254)
    reason = models.TextField(blank=True)
    manifest = models.JSONField(null=True, help_text="null: this version deleted the class")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["name", "number"], name="namespaceclassversion_once"),
        ]

    def __str__(self) -> str:
        return f"NamespaceClass {self.name} #{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert; a stored version cannot be saved again."""
        if not self._state.adding:
            raise AppendOnlyError("versions of classes are never changed")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse a deletion."""
        raise AppendOnlyError("versions of classes are never deleted")


class ClassMember(models.Model):
    """A namespace that a class matches, the version in force there, and what hinders it.

    ``has_left``: the class matches it no longer, and its policies wait for a person to confirm
    that so many go.
    """

    namespace_class = models.ForeignKey(NamespaceClass, models.CASCADE, related_name="members")
    namespace = models.ForeignKey(Namespace, models.CASCADE, related_name="class_members")
    version = models.PositiveBigIntegerField()
    has_left = models.BooleanField(default=False)
    problems = models.JSONField(default=list, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["namespace_class", "namespace"], name="classmember_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace} of {self.namespace_class}"


class ClassPolicy(models.Model):
    """A policy of a namespace that comes from a class, with the version that it was made from.

    ``was_made``: the class made it; otherwise it was there before. ``exceptions`` are the fields
    that somebody changed in this namespace: each its path, manager, revision, time, and
    ``removed``; the empty path stands for the whole policy, which somebody deleted.
    """

    namespace_class = models.ForeignKey(NamespaceClass, models.CASCADE, related_name="made")
    namespace = models.ForeignKey(Namespace, models.CASCADE, related_name="class_policies")
    kind = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    version = models.PositiveBigIntegerField()
    was_made = models.BooleanField(default=True)
    exceptions = models.JSONField(default=list, blank=True)
    exception_count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["namespace", "kind", "name"]
        verbose_name_plural = "class policies"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["namespace", "kind", "name"], name="classpolicy_once"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["namespace_class"],
                condition=Q(exception_count__gt=0),
                name="classpolicy_exceptions",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name} of {self.namespace_class}"
