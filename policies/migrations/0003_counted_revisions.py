"""Number revisions by the cluster's own count; limit what waits for confirmation."""

from importlib import import_module

from django.db import migrations, models

triggers = import_module("policies.migrations.0002_append_only")


def restore_triggers(apps, editor):
    """Create them again: SQLite rebuilds the table for a new column, and drops them with it."""
    triggers.drop(editor.connection)
    triggers.create(editor.connection)


class Migration(migrations.Migration):
    """Revisions written before count as 0: nobody asks for changes since then."""

    dependencies = [("policies", "0002_append_only")]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, restore_triggers),
        migrations.AddField(
            model_name="policyrevision",
            name="cluster_revision",
            field=models.PositiveBigIntegerField(default=0, editable=False),
        ),
        migrations.AddIndex(
            model_name="policyrevision",
            index=models.Index(
                fields=["cluster", "cluster_revision"], name="policyrevision_by_count"
            ),
        ),
        migrations.RunPython(restore_triggers, migrations.RunPython.noop),
        migrations.AddField(
            model_name="cluster",
            name="unconfirmed_limit",
            field=models.PositiveIntegerField(
                default=0,
                help_text=(
                    "most reservations of one namespace that may wait for confirmation; 0: no limit"
                ),
            ),
        ),
    ]
