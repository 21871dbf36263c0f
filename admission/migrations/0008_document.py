"""What is read of one decision at a time is one compressed column; owner and class have their own.

Rows of before keep their columns, under names that begin with ``old_`` in Python alone.
"""

from importlib import import_module

import admission.models.columns
import admission.models.document
from django.db import migrations, models
from django.db.migrations.exceptions import IrreversibleError

from admission.models.partitions import TABLE

PARTS = ("groups", "policies", "trace", "charges", "request")
append_only = import_module("admission.migrations.0002_append_only")


def guard_again(apps, editor):
    """Create the triggers again that SQLite drops with the table that it rebuilds."""
    if editor.connection.vendor != "sqlite":
        return
    with editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [TABLE]
        )
        if not cursor.fetchone()[0]:
            append_only.create_sqlite(cursor, *append_only.KEPT[0])


def store_as_packed(apps, editor):
    """Have PostgreSQL not compress again what is compressed."""
    if editor.connection.vendor == "postgresql":
        with editor.connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {TABLE} ALTER document SET STORAGE EXTERNAL")


def refuse(apps, editor):
    """Refuse the way back once rows have documents: their parts are nowhere else."""
    if apps.get_model("admission", "AuditEvent").objects.filter(document__isnull=False).exists():
        raise IrreversibleError("decisions were recorded that the version before cannot read")


def in_state(part):
    """Name a field otherwise, and let its column be."""
    default = {} if part == "request" else []
    kept = admission.models.columns.KeptJSONField(default=type(default), db_column=part)
    return migrations.SeparateDatabaseAndState(
        state_operations=[
            migrations.RenameField("auditevent", part, f"old_{part}"),
            migrations.AlterField("auditevent", f"old_{part}", kept),
        ]
    )


def nullable(part):
    """New rows leave the column empty."""
    kept = admission.models.columns.KeptJSONField(null=True, db_column=part, editable=False)
    return migrations.AlterField("auditevent", f"old_{part}", kept)


def text(name, *label):
    """A column of names."""
    field = models.CharField(*label, max_length=253, blank=True, default="", db_default="")
    return migrations.AddField("auditevent", name, field)


class Migration(migrations.Migration):
    """A row takes a third less space, and the database a third less time for it."""

    dependencies = [("admission", "0007_hits_of_tallies")]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, guard_again),
        *map(in_state, PARTS),
        *map(nullable, PARTS),
        text("owner_kind"),
        text("owner_name"),
        text("owner_uid", "owner UID"),
        text("priority_class"),
        migrations.AddField(
            "auditevent",
            "is_native",
            models.BooleanField("enforced by the API server", default=False, db_default=False),
        ),
        migrations.AddField(
            "auditevent", "document", admission.models.document.DocumentField(null=True)
        ),
        migrations.RunPython(store_as_packed, migrations.RunPython.noop),
        migrations.RunPython(guard_again, refuse),
    ]
