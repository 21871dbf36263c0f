"""The record's JSON as text on PostgreSQL: it is never searched, and text is cheaper to write.

The table is rewritten, under a lock that lets nobody read or write meanwhile: about a minute for
ten million rows. On SQLite it is text already.
"""

from django.db import migrations

import admission.models.columns

TABLE = "admission_auditevent"
LISTS = (
    "groups",
    "policies",
    "violations",
    "observed",
    "trace",
    "patch",
    "warnings",
    "charges",
)
COLUMNS = (*LISTS, "request")


def change(kind):
    def run(apps, editor):
        if editor.connection.vendor != "postgresql":
            return
        with editor.connection.cursor() as cursor:
            changes = (f'ALTER "{name}" TYPE {kind} USING "{name}"::{kind}' for name in COLUMNS)
            cursor.execute(f"ALTER TABLE {TABLE} {', '.join(changes)}")
            compress(cursor)

    return run


def compress(cursor):
    """A column of another type is compressed as the server does by default."""
    cursor.execute(
        "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
    )
    if (cursor.fetchone() or (False,))[0]:
        changes = (f'ALTER "{name}" SET COMPRESSION lz4' for name in COLUMNS)
        cursor.execute(f"ALTER TABLE {TABLE} {', '.join(changes)}")


def field(name):
    return admission.models.columns.KeptJSONField(default=dict if name == "request" else list)


class Migration(migrations.Migration):
    dependencies = [("admission", "0004_retention")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(change("text"), change("jsonb"))],
            state_operations=[
                migrations.AlterField("auditevent", name, field(name)) for name in COLUMNS
            ],
        )
    ]
