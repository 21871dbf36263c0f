"""AdmissionConfig, Django's app configuration of admission: partitions made after migrations."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AdmissionConfig(AppConfig):
    """The admission app."""

    name = "admission"

    def ready(self) -> None:
        """Create the partitions of the coming days after each migration."""
        post_migrate.connect(_make_partitions, sender=self)


def _make_partitions(**_migration: Any) -> None:
    from admission.models import partitions  # noqa: PLC0415  models are imported after the apps

    if partitions.is_ready():
        partitions.ensure_ahead()
