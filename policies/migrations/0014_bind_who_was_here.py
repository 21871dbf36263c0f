"""Whoever could see and write everything before there were role bindings still can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import migrations

if TYPE_CHECKING:
    from django.apps.registry import Apps
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def bind(apps: Apps, _editor: BaseDatabaseSchemaEditor) -> None:
    users = apps.get_model(settings.AUTH_USER_MODEL).objects.filter(is_superuser=False)
    binding = apps.get_model("policies", "RoleBinding")
    binding.objects.bulk_create(
        binding(user=user, role="admin" if user.is_staff else "viewer", created_by="migration")
        for user in users.order_by("pk")
    )


class Migration(migrations.Migration):
    dependencies = [("policies", "0013_role_binding")]
    operations = [migrations.RunPython(bind, migrations.RunPython.noop)]
