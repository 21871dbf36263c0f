"""Let the database itself refuse to change a policy's history, whoever asks.

On SQLite a later migration that rebuilds the table drops its triggers: call ``create`` again then
(a test looks for them after all migrations).
"""

from django.db import migrations

TABLE = "policies_policyrevision"
REFUSAL = "policy revisions are append-only"

SQLITE = {
    "revision_no_update": f"""
        CREATE TRIGGER revision_no_update BEFORE UPDATE ON {TABLE}
        BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END""",
    "revision_no_delete": f"""
        CREATE TRIGGER revision_no_delete BEFORE DELETE ON {TABLE}
        BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END""",
    # INSERT OR REPLACE deletes the old row without asking the trigger above.
    "revision_no_replace": f"""
        CREATE TRIGGER revision_no_replace BEFORE INSERT ON {TABLE}
        WHEN EXISTS (SELECT 1 FROM {TABLE} WHERE id = NEW.id OR (
            cluster = NEW.cluster AND kind = NEW.kind AND namespace = NEW.namespace
            AND name = NEW.name AND number = NEW.number))
        BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END""",
}
POSTGRESQL = {
    "revision_no_change": f"""
        CREATE TRIGGER revision_no_change BEFORE UPDATE OR DELETE ON {TABLE}
        FOR EACH ROW EXECUTE FUNCTION revision_refuse_change()""",
    "revision_no_truncate": f"""
        CREATE TRIGGER revision_no_truncate BEFORE TRUNCATE ON {TABLE}
        FOR EACH STATEMENT EXECUTE FUNCTION revision_refuse_change()""",
}
POSTGRESQL_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION revision_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'; END $$"""


def create(connection):
    """Create the triggers of this database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for statement in SQLITE.values():
                cursor.execute(statement)
        elif connection.vendor == "postgresql":
            cursor.execute(POSTGRESQL_FUNCTION)
            for name, statement in POSTGRESQL.items():
                cursor.execute(statement)
                # ALWAYS: also where a session plays replica, which skips ordinary triggers.
                cursor.execute(f"ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {name}")


def drop(connection):
    """Drop them: going back, and tests that empty the database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for name in SQLITE:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
        elif connection.vendor == "postgresql":
            for name in POSTGRESQL:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {TABLE}")


class Migration(migrations.Migration):
    """Two statements for each kind of write that must not be."""

    dependencies = [("policies", "0001_initial")]

    operations = [
        migrations.RunPython(
            lambda apps, editor: create(editor.connection),
            lambda apps, editor: drop(editor.connection),
        )
    ]
