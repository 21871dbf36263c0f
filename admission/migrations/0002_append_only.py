"""The record in daily partitions on PostgreSQL, and triggers that refuse every later change.

On SQLite a later migration that rebuilds one of the tables drops its triggers: call ``create``
again then (a test looks for them after all migrations).
"""

from django.db import migrations

from admission.models import partitions
from admission.models.partitions import TABLE

# A table, the beginning of its triggers' names, and the text of the refusal.
KEPT = (
    (TABLE, "audit", "audit events are append-only"),
    ("admission_auditexport", "audit_export", "exports are append-only"),
    ("admission_retentionrun", "audit_retention", "retention runs are append-only"),
)
UNDIVIDED = f"{TABLE}_undivided"
# Compared by bytes: as Kubernetes compares names, cheaper, and a prefix is a range of the index.
BY_BYTES = ("id", "cluster", "namespace", "name", "user", "request_uid", "verdict")
LONG = ("message", "groups", "policies", "policy_names", "violations", "observed", "trace", "patch",
        "warnings", "charges", "request")
INDEXES = {
    "audit_time": "(created, id)",
    "audit_place": "(namespace, created, id, cluster)",
    "audit_verdict": "(created, id, cluster) WHERE verdict = 'denied'",
    "audit_request": "(request_uid)",
    "audit_name": "(name)",
}


def create(connection):
    """Create the triggers of this database, on its tables and each partition of the record."""
    with connection.cursor() as cursor:
        for table, name, refusal in KEPT:
            if connection.vendor == "sqlite":
                create_sqlite(cursor, table, name, refusal)
            elif connection.vendor == "postgresql":
                create_postgresql(cursor, table, name, refusal)
        for day in partitions.days(connection):
            partitions.guard(cursor, partitions.name(day))


def create_sqlite(cursor, table, name, refusal):
    """Refuse updates, deletes, and INSERT OR REPLACE, which deletes without asking the others."""
    refuse = f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
    cursor.execute(f"CREATE TRIGGER {name}_no_update BEFORE UPDATE ON {table} {refuse}")
    cursor.execute(f"CREATE TRIGGER {name}_no_delete BEFORE DELETE ON {table} {refuse}")
    cursor.execute(
        f"CREATE TRIGGER {name}_no_replace BEFORE INSERT ON {table}"
        f" WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id) {refuse}"
    )


def create_postgresql(cursor, table, name, refusal):
    """Refuse updates, deletes and TRUNCATE."""
    cursor.execute(
        f"CREATE OR REPLACE FUNCTION {name}_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN RAISE EXCEPTION '{refusal}'"
        " USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    for trigger, event, each in (
        (f"{name}_no_change", "UPDATE OR DELETE", "ROW"),
        (f"{name}_no_truncate", "TRUNCATE", "STATEMENT"),
    ):
        cursor.execute(
            f"CREATE TRIGGER {trigger} BEFORE {event} ON {table}"
            f" FOR EACH {each} EXECUTE FUNCTION {name}_refuse_change()"
        )
        # ALWAYS: also where a session plays replica, which skips ordinary triggers.
        cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}")


def drop(connection):
    """Drop them: going back, and tests that empty the database."""
    with connection.cursor() as cursor:
        for table, name, _ in KEPT:
            for end in ("no_update", "no_delete", "no_replace", "no_change", "no_truncate"):
                if connection.vendor == "sqlite":
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name}_{end}")
                elif connection.vendor == "postgresql":
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name}_{end} ON {table}")
        for day in partitions.days(connection):
            cursor.execute(f"DROP TRIGGER IF EXISTS audit_no_truncate ON {partitions.name(day)}")


def divide(apps, editor):
    """Put a table of daily partitions in the place of the empty one that Django made."""
    if editor.connection.vendor != "postgresql" or partitions.is_ready():
        return
    with editor.connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {TABLE} RENAME TO {UNDIVIDED}")
        cursor.execute(
            f"CREATE TABLE {TABLE} (LIKE {UNDIVIDED} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
            " PARTITION BY RANGE (created)"
        )
        shape(cursor)
        # Its indexes have the names that the new ones get.
        cursor.execute(f"DROP TABLE {UNDIVIDED}")
        # A key of a partitioned table has to hold the column by which it is divided.
        cursor.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (cluster, created, id)")
        for name, definition in INDEXES.items():
            cursor.execute(f"CREATE INDEX {name} ON {TABLE} {definition}")


def shape(cursor):
    """Set collations and compression: lz4, where the server has it, takes a third of the time."""
    cursor.execute(
        "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
    )
    has_lz4 = (cursor.fetchone() or (False,))[0]
    cursor.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [TABLE],
    )
    for name, kind in cursor.fetchall():
        if name in BY_BYTES:
            cursor.execute(f'ALTER TABLE {TABLE} ALTER "{name}" TYPE {kind} COLLATE "C"')
        if name in LONG and has_lz4:
            cursor.execute(f'ALTER TABLE {TABLE} ALTER "{name}" SET COMPRESSION lz4')


class Migration(migrations.Migration):
    """Nothing of the record, of exports and of removals is changed once it is written."""

    dependencies = [("admission", "0001_initial")]

    operations = [
        migrations.RunPython(divide, migrations.RunPython.noop),
        migrations.RunPython(
            lambda apps, editor: create(editor.connection),
            lambda apps, editor: drop(editor.connection),
        ),
    ]
