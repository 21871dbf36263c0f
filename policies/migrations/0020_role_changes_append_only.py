"""Let the database itself refuse to change the history of roles, whoever asks."""

from django.db import migrations

TABLE = "policies_rolechange"
REFUSAL = "the history of roles is append-only"

SQLITE = {
    "rolechange_no_update": f"""
        CREATE TRIGGER rolechange_no_update BEFORE UPDATE ON {TABLE}
        BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END""",
    "rolechange_no_delete": f"""
        CREATE TRIGGER rolechange_no_delete BEFORE DELETE ON {TABLE}
        BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END""",
}
POSTGRESQL = {
    "rolechange_no_change": f"""
        CREATE TRIGGER rolechange_no_change BEFORE UPDATE OR DELETE ON {TABLE}
        FOR EACH ROW EXECUTE FUNCTION rolechange_refuse_change()""",
    "rolechange_no_truncate": f"""
        CREATE TRIGGER rolechange_no_truncate BEFORE TRUNCATE ON {TABLE}
        FOR EACH STATEMENT EXECUTE FUNCTION rolechange_refuse_change()""",
}
POSTGRESQL_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION rolechange_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
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

    dependencies = [("policies", "0019_role_changes")]

    operations = [
        migrations.RunPython(
            lambda apps, editor: create(editor.connection),
            lambda apps, editor: drop(editor.connection),
        )
    ]
