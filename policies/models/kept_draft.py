"""KeptDraft: what a person has typed into an editor and not saved."""

from __future__ import annotations

from typing import ClassVar, Final

from django.conf import settings
from django.db import models

MOST: Final = 20
"""So many of one person are kept; the oldest goes for a new one."""


class KeptDraft(models.Model):
    """The text of one editor; ``seen`` is the revision that was looked at when it was begun."""

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
