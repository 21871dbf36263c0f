"""The journal of the ledger, which the database itself refuses to change.

Only the removal of what is too old is let through: on PostgreSQL in a transaction that says so, on
SQLite by dropping the trigger within it. On SQLite a later migration that rebuilds the table drops
its triggers: call ``create`` again then (a test looks for them after all migrations).
"""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

TABLE = "policies_ledgerentry"
REFUSAL = "the journal of the ledger is append-only"
REFUSE = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
SQLITE_TRIGGERS = (
    f"CREATE TRIGGER ledgerentry_no_update BEFORE UPDATE ON {TABLE} {REFUSE}",
    f"CREATE TRIGGER ledgerentry_no_delete BEFORE DELETE ON {TABLE} {REFUSE}",
    # INSERT OR REPLACE deletes the old row without asking the trigger for deletes.
    f"CREATE TRIGGER ledgerentry_no_replace BEFORE INSERT ON {TABLE}"
    f" WHEN EXISTS (SELECT 1 FROM {TABLE} WHERE id = NEW.id) {REFUSE}",
)
POSTGRESQL_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION ledgerentry_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND current_setting('gatehouse.retention', true) = 'on' THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'integrity_constraint_violation';
    END $$"""
POSTGRESQL_TRIGGERS = {
    "ledgerentry_no_change": "UPDATE OR DELETE ON {table} FOR EACH ROW",
    "ledgerentry_no_truncate": "TRUNCATE ON {table} FOR EACH STATEMENT",
}
# The amounts that count already, so that the entries of a quota add up to what it uses.
HELD = f"""
    INSERT INTO {TABLE} (cluster_id, quota_uid, namespace, resource, object_uid, object_name,
        action, before, after, cause, reference, created)
    SELECT cluster_id, quota_uid, namespace, resource, object_uid, object_name,
        'charge', '{{}}', amounts, 'upgrade', '', CURRENT_TIMESTAMP
    FROM policies_charge WHERE state <> 'released' ORDER BY id"""
# As for the other tables of the ledger: the cluster is in the key, to distribute them by it.
KEY = (
    f"ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_pkey",
    f"ALTER TABLE {TABLE} ADD PRIMARY KEY (id, cluster_id)",
)


def begin(apps, editor):
    """Put the cluster into the key, and enter what is charged now."""
    if editor.connection.vendor == "postgresql":
        for statement in KEY:
            editor.execute(statement)
    editor.execute(HELD)


def create(connection):
    """Create the triggers of this database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for statement in SQLITE_TRIGGERS:
                cursor.execute(statement)
        elif connection.vendor == "postgresql":
            cursor.execute(POSTGRESQL_FUNCTION)
            for name, event in POSTGRESQL_TRIGGERS.items():
                cursor.execute(
                    f"CREATE TRIGGER {name} BEFORE {event.format(table=TABLE)}"
                    " EXECUTE FUNCTION ledgerentry_refuse_change()"
                )
                # ALWAYS: also where a session plays replica, which skips ordinary triggers.
                cursor.execute(f"ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {name}")


def drop(connection):
    """Drop them: going back, and tests that empty the database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for end in ("update", "delete", "replace"):
                cursor.execute(f"DROP TRIGGER IF EXISTS ledgerentry_no_{end}")
        elif connection.vendor == "postgresql":
            for name in POSTGRESQL_TRIGGERS:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {TABLE}")


class Migration(migrations.Migration):
    """A row for each change of a charge, never changed; removed with the record's retention."""

    dependencies = [
        ('policies', '0009_namespace_classes'),
    ]

    operations = [
        migrations.CreateModel(
            name='LedgerEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('quota_uid', models.UUIDField()),
                ('namespace', models.CharField(max_length=63)),
                ('resource', models.CharField(blank=True, max_length=317)),
                ('object_uid', models.CharField(blank=True, max_length=128)),
                ('object_name', models.CharField(blank=True, max_length=253)),
                ('action', models.CharField(choices=[('charge', 'charged'), ('add', 'added'), ('confirm', 'confirmed'), ('resize', 'resized'), ('release', 'released'), ('opening', 'opening balance set'), ('recount', 'recounted')], max_length=7)),
                ('before', models.JSONField(default=dict)),
                ('after', models.JSONField(default=dict)),
                ('cause', models.CharField(choices=[('admission', 'admitted'), ('watch', 'seen in the cluster'), ('list', 'compared with a list of the cluster'), ('lease', 'never seen before its lease ended'), ('figures', 'figure of the cluster'), ('recount', 'recount'), ('person', 'by hand'), ('upgrade', 'held when the journal began')], max_length=9)),
                ('reference', models.CharField(blank=True, help_text='id of the decision, or the user', max_length=253)),
                ('created', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('cluster', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='policies.cluster')),
            ],
            options={
                'verbose_name': 'ledger entry',
                'verbose_name_plural': 'ledger entries',
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['quota_uid', 'cluster', 'id'], name='ledgerentry_by_quota')],
            },
        ),
        migrations.RunPython(begin, migrations.RunPython.noop),
        migrations.RunPython(
            lambda apps, editor: create(editor.connection),
            lambda apps, editor: drop(editor.connection),
        ),
    ]
