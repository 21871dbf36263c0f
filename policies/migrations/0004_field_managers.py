"""The manager of each write and of each field; on SQLite the history's triggers are made again."""

from importlib import import_module

import django.db.models.deletion
from django.db import migrations, models

append_only = import_module("policies.migrations.0002_append_only")


def triggers(change):
    """Make what creates or drops the triggers where a rebuilt table loses them: on SQLite."""

    def execute(apps, editor):
        if editor.connection.vendor == "sqlite":
            change(editor.connection)

    return execute


class Migration(migrations.Migration):
    """Revisions name the manager and the commit; objects remember the manager of each field."""

    dependencies = [("policies", "0003_ledger_keys")]

    operations = [
        migrations.RunPython(triggers(append_only.drop), triggers(append_only.create)),
        migrations.AddField(
            model_name="policyrevision",
            name="commit",
            field=models.CharField(blank=True, editable=False, max_length=64),
        ),
        migrations.AddField(
            model_name="policyrevision",
            name="manager",
            field=models.CharField(blank=True, editable=False, max_length=260),
        ),
        migrations.CreateModel(
            name="ObjectManagers",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("namespace", models.CharField(blank=True, max_length=63)),
                ("kind", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("set", models.CharField(blank=True, max_length=63)),
                ("fields", models.JSONField(default=dict)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="policies.cluster",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["cluster", "set"], name="object_managers_of_set")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "kind", "namespace", "name"), name="object_managers_once"
                    )
                ],
            },
        ),
        migrations.RunPython(triggers(append_only.create), triggers(append_only.drop)),
    ]
