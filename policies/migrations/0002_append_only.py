"""Let the database itself refuse to change the history of policies and of roles, whoever asks.

On SQLite a later migration that rebuilds one of the tables drops its triggers: call ``create``
again then (a test looks for them after all migrations).
"""

from django.db import migrations

REVISIONS = "policies_policyrevision"
ROLES = "policies_rolechange"
REFUSALS = {
    REVISIONS: ("revision", "policy revisions are append-only"),
    ROLES: ("rolechange", "the history of roles is append-only"),
}
# INSERT OR REPLACE deletes the old row without asking the trigger for deletes.
NO_REPLACE = f"""
    CREATE TRIGGER revision_no_replace BEFORE INSERT ON {REVISIONS}
    WHEN EXISTS (SELECT 1 FROM {REVISIONS} WHERE id = NEW.id OR (
        cluster = NEW.cluster AND kind = NEW.kind AND namespace = NEW.namespace
        AND name = NEW.name AND number = NEW.number))
    BEGIN SELECT RAISE(ABORT, '{REFUSALS[REVISIONS][1]}'); END"""


def create(connection):
    """Create the triggers of this database."""
    with connection.cursor() as cursor:
        for table, (prefix, refusal) in REFUSALS.items():
            if connection.vendor == "sqlite":
                create_sqlite(cursor, table, prefix, refusal)
            elif connection.vendor == "postgresql":
                create_postgresql(cursor, table, prefix, refusal)


def create_sqlite(cursor, table, prefix, refusal):
    """Two triggers for each table, and one more for revisions."""
    for action in ("update", "delete"):
        cursor.execute(
            f"CREATE TRIGGER {prefix}_no_{action} BEFORE {action.upper()} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
        )
    if table == REVISIONS:
        cursor.execute(NO_REPLACE)


def create_postgresql(cursor, table, prefix, refusal):
    """A function that refuses, called for rows and for TRUNCATE."""
    cursor.execute(
        f"CREATE OR REPLACE FUNCTION {prefix}_refuse_change() RETURNS trigger LANGUAGE plpgsql "
        f"AS $$ BEGIN RAISE EXCEPTION '{refusal}' "
        "USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    for name, event in (
        (f"{prefix}_no_change", f"UPDATE OR DELETE ON {table} FOR EACH ROW"),
        (f"{prefix}_no_truncate", f"TRUNCATE ON {table} FOR EACH STATEMENT"),
    ):
        cursor.execute(
            f"CREATE TRIGGER {name} BEFORE {event} EXECUTE FUNCTION {prefix}_refuse_change()"
        )
        # ALWAYS: also where a session plays replica, which skips ordinary triggers.
        cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def drop(connection):
    """Drop them: going back, and tests that empty the database."""
    with connection.cursor() as cursor:
        for table, (prefix, _) in REFUSALS.items():
            if connection.vendor == "sqlite":
                for end in ("update", "delete", "replace"):
                    cursor.execute(f"DROP TRIGGER IF EXISTS {prefix}_no_{end}")
            elif connection.vendor == "postgresql":
                for end in ("change", "truncate"):
                    cursor.execute(f"DROP TRIGGER IF EXISTS {prefix}_no_{end} ON {table}")


class Migration(migrations.Migration):
    """No row of these tables is changed or removed once it is written."""

    dependencies = [("policies", "0001_initial")]

    operations = [
        migrations.RunPython(
            lambda apps, editor: create(editor.connection),
            lambda apps, editor: drop(editor.connection),
        )
    ]
