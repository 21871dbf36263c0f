"""KeyCheck: a value that shows whether the secret key is the one credentials were made with."""

from __future__ import annotations

from django.db import models


class KeyCheck(models.Model):
    """One row: a value that only the key of this database's credentials gives.

    The key itself cannot be derived from it.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    value = models.CharField(max_length=64)
    made = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="keycheck_is_one_row"),
        ]

    def __str__(self) -> str:
        return f"key of {self.made:%Y-%m-%d}"
