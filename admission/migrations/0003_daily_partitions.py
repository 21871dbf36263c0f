"""The record in days: on PostgreSQL a table partitioned by ``created``, on SQLite other indexes.

``created`` becomes exactly the time that the decision id begins with, so that an id leads to its
day. Rows stay as they are otherwise; both ways work on a database with rows.
"""

from importlib import import_module

from django.db import migrations, models

from admission.models import decision_id
from admission.models import partitions

before = import_module("admission.migrations.0002_append_only")

TABLE = "admission_auditevent"
OLD = "admission_auditevent_undivided"
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
OLD_INDEXES = {
    "audit_where": "(cluster, namespace, id)",
    "audit_verdict": "(verdict, id)",
    "audit_object": "(namespace, name, id)",
    "audit_user": '("user", id)',
    "audit_created": "(created)",
    "admission_auditevent_request_uid": "(request_uid)",
    "admission_auditevent_request_uid_like": "(request_uid varchar_pattern_ops)",
    "admission_auditevent_id_like": "(id varchar_pattern_ops)",
}


def milliseconds(column):
    """SQL for the time that an id begins with."""
    characters = (
        f"(strpos('{decision_id.ALPHABET}', substr({column}, {place}, 1)) - 1)::bigint"
        f" << {5 * (10 - place)}"
        for place in range(1, 11)
    )
    return "((" + " | ".join(f"({each})" for each in characters) + ") >> 2)"


MOMENT = f"""CASE WHEN id ~ '^[{decision_id.ALPHABET}]{{16}}$'
    THEN timestamptz 'epoch' + {milliseconds("id")} * interval '1 millisecond'
    ELSE created END"""


def create(connection):
    """Create the triggers of this database, on the record and each of its partitions."""
    before.create(connection)
    with connection.cursor() as cursor:
        for day in partitions.days(connection):
            partitions.guard(cursor, partitions.name(day))


def drop(connection):
    """Drop them: going back, and tests that empty the database."""
    before.drop(connection)
    with connection.cursor() as cursor:
        for day in partitions.days(connection):
            cursor.execute(f"DROP TRIGGER IF EXISTS audit_no_truncate ON {partitions.name(day)}")


def divide(apps, editor):
    """Move the rows of the one table into a partition for each day."""
    if editor.connection.vendor != "postgresql":
        return
    before.drop(editor.connection)
    with editor.connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {TABLE} RENAME TO {OLD}")
        cursor.execute(
            f"CREATE TABLE {TABLE} (LIKE {OLD} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
            " PARTITION BY RANGE (created)"
        )
        shape(cursor)
        # The new table has its triggers from the start: each partition inherits them.
        before.create(editor.connection)
        cursor.execute(f"SELECT DISTINCT ({MOMENT} AT TIME ZONE 'UTC')::date FROM {OLD}")
        for (day,) in cursor.fetchall():
            partitions.ensure(day)
        partitions.ensure_ahead()
        columns = columns_of(cursor)
        moved = ", ".join(MOMENT if name == "created" else f'"{name}"' for name in columns)
        names = ", ".join(f'"{name}"' for name in columns)
        cursor.execute(f"INSERT INTO {TABLE} ({names}) SELECT {moved} FROM {OLD}")
        cursor.execute(f"DROP TABLE {OLD}")
        cursor.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (cluster, created, id)")
        for name, definition in INDEXES.items():
            cursor.execute(f"CREATE INDEX {name} ON {TABLE} {definition}")


def shape(cursor):
    """Collations and compression, before there are rows."""
    cursor.execute(
        "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
    )
    has_lz4 = (cursor.fetchone() or (False,))[0]
    for name, kind in columns_of(cursor).items():
        if name in BY_BYTES:
            cursor.execute(f'ALTER TABLE {TABLE} ALTER "{name}" TYPE {kind} COLLATE "C"')
        if name in LONG and has_lz4:
            cursor.execute(f'ALTER TABLE {TABLE} ALTER "{name}" SET COMPRESSION lz4')


def columns_of(cursor):
    """The types of the record's columns by name."""
    cursor.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [TABLE],
    )
    return dict(cursor.fetchall())


def unite(apps, editor):
    """Move the rows of all days back into one table."""
    if editor.connection.vendor != "postgresql":
        return
    drop(editor.connection)
    with editor.connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE {OLD} (LIKE {TABLE} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
        )
        kinds = columns_of(cursor)
        for name in BY_BYTES:
            cursor.execute(f'ALTER TABLE {OLD} ALTER "{name}" TYPE {kinds[name]} COLLATE "default"')
        cursor.execute(f"INSERT INTO {OLD} SELECT * FROM {TABLE}")
        cursor.execute(f"DROP TABLE {TABLE}")
        cursor.execute(f"ALTER TABLE {OLD} RENAME TO {TABLE}")
        cursor.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (id)")
        for name, definition in OLD_INDEXES.items():
            cursor.execute(f"CREATE INDEX {name} ON {TABLE} {definition}")
    before.create(editor.connection)


def set_times(apps, editor):
    """Write ``created`` from the id, on SQLite: the triggers are lifted meanwhile."""
    connection = editor.connection
    if connection.vendor != "sqlite":
        return
    before.drop(connection)
    adapted = connection.ops.adapt_datetimefield_value
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {TABLE} ORDER BY id")
        ids = [found for (found,) in cursor.fetchall() if decision_id.is_decision_id(found)]
        cursor.executemany(
            f"UPDATE {TABLE} SET created = %s WHERE id = %s",
            [(adapted(decision_id.moment(found)), found) for found in ids],
        )
    before.create(connection)


class OnSQLite:
    """An operation on indexes that only SQLite carries out: ``divide`` makes PostgreSQL's."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        """Do so on SQLite."""
        if schema_editor.connection.vendor == "sqlite":
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        """Undo it on SQLite."""
        if schema_editor.connection.vendor == "sqlite":
            super().database_backwards(app_label, schema_editor, from_state, to_state)


class RemoveIndex(OnSQLite, migrations.RemoveIndex):
    """As Django's, on SQLite."""


class AddIndex(OnSQLite, migrations.AddIndex):
    """As Django's, on SQLite."""


def add(name, *fields):
    """An index of the record."""
    return AddIndex("auditevent", models.Index(fields=list(fields), name=name))


class Migration(migrations.Migration):
    """State for both databases; tables and indexes for each its own way."""

    dependencies = [("admission", "0002_append_only")]

    operations = [
        migrations.AlterModelOptions(
            name="auditevent",
            options={"ordering": ["-created", "-id"], "verbose_name": "decision"},
        ),
        RemoveIndex("auditevent", "audit_where"),
        RemoveIndex("auditevent", "audit_verdict"),
        RemoveIndex("auditevent", "audit_object"),
        RemoveIndex("auditevent", "audit_user"),
        RemoveIndex("auditevent", "audit_created"),
        add("audit_time", "created", "id"),
        add("audit_cluster", "cluster", "created", "id"),
        add("audit_place", "namespace", "created", "id"),
        add("audit_verdict", "verdict", "created", "id"),
        add("audit_name", "name"),
        migrations.RunPython(set_times, migrations.RunPython.noop),
        migrations.RunPython(divide, unite),
    ]
