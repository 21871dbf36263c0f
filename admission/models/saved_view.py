"""Table SavedView: owner, name, query string of the explorer, ``is_shared``."""

from __future__ import annotations

from typing import ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models import Q

LONGEST_QUERY: Final = 2000


class SavedViewQuerySet(models.QuerySet["SavedView"]):
    """Queries of saved views."""

    def usable_by(self, user: object) -> SavedViewQuerySet:
        """A person's own, and shared ones, which ``sees_places`` still has to check."""
        return self.filter(Q(owner=user) | Q(is_shared=True))


class SavedView(models.Model):
    """One query string of a person, possibly shared with everybody who sees the places it names.

    It finds what its reader may see, not what its owner may.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=LONGEST_QUERY, blank=True)
    is_shared = models.BooleanField("shared", default=False)

    objects = SavedViewQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["owner", "name"], name="saved_view_once"),
        ]

    def __str__(self) -> str:
        return self.name
