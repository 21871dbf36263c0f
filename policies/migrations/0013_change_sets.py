"""Change sets, and their steps, which the database itself refuses to change.

On SQLite a later migration that rebuilds the table of steps drops its triggers: call ``create``
again then (a test looks for them after all migrations).
"""

import django.core.validators
import django.db.models.deletion
import policies.models.changes.change_set
from django.db import migrations, models

TABLE = "policies_changestep"
REFUSAL = "the steps of changes are append-only"
REFUSE = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
SQLITE_TRIGGERS = (
    f"CREATE TRIGGER changestep_no_update BEFORE UPDATE ON {TABLE} {REFUSE}",
    f"CREATE TRIGGER changestep_no_delete BEFORE DELETE ON {TABLE} {REFUSE}",
    # INSERT OR REPLACE deletes the old row without asking the trigger for deletes.
    f"CREATE TRIGGER changestep_no_replace BEFORE INSERT ON {TABLE}"
    f" WHEN EXISTS (SELECT 1 FROM {TABLE} WHERE id = NEW.id) {REFUSE}",
)
POSTGRESQL_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION changestep_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'integrity_constraint_violation';
    END $$"""
POSTGRESQL_TRIGGERS = {
    "changestep_no_change": "UPDATE OR DELETE ON {table} FOR EACH ROW",
    "changestep_no_truncate": "TRUNCATE ON {table} FOR EACH STATEMENT",
}


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
                    " EXECUTE FUNCTION changestep_refuse_change()"
                )
                # ALWAYS: also where a session plays replica, which skips ordinary triggers.
                cursor.execute(f"ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {name}")


def drop(connection):
    """Drop them: going back, and tests that empty the database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for end in ("update", "delete", "replace"):
                cursor.execute(f"DROP TRIGGER IF EXISTS changestep_no_{end}")
        elif connection.vendor == "postgresql":
            for name in POSTGRESQL_TRIGGERS:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {TABLE}")


class Migration(migrations.Migration):
    """What is proposed together, and each step, never changed."""

    dependencies = [
        ('policies', '0012_kept_tests'),
    ]

    operations = [
        migrations.CreateModel(
            name='ChangeSet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('title', models.CharField(max_length=200)),
                ('reason', models.TextField(blank=True, validators=[django.core.validators.MaxLengthValidator(10000)])),
                ('ticket', models.CharField(blank=True, max_length=500, validators=[policies.models.changes.change_set.check_ticket])),
                ('author', models.CharField(editable=False, max_length=254)),
                ('state', models.CharField(choices=[('draft', 'draft'), ('in_review', 'in review'), ('approved', 'approved'), ('rolling_out', 'rolling out'), ('done', 'done'), ('stopped', 'stopped'), ('reverted', 'reverted'), ('abandoned', 'abandoned')], default='draft', max_length=16)),
                ('content_hash', models.CharField(editable=False, max_length=64)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('updated', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['state', '-id'], name='changeset_by_state')],
                'constraints': [models.CheckConstraint(condition=models.Q(('title', ''), _negated=True), name='changeset_has_a_title'), models.CheckConstraint(condition=models.Q(('state__in', ['draft', 'in_review', 'approved', 'rolling_out', 'done', 'stopped', 'reverted', 'abandoned'])), name='changeset_state_known')],
            },
        ),
        migrations.CreateModel(
            name='ChangeItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.CharField(max_length=63)),
                ('kind', models.CharField(max_length=63)),
                ('namespace', models.CharField(max_length=63)),
                ('name', models.CharField(max_length=253)),
                ('base_revision', models.PositiveBigIntegerField(default=0)),
                ('base', models.JSONField(blank=True, null=True)),
                ('content', models.JSONField(blank=True, null=True)),
                ('written', models.PositiveBigIntegerField(blank=True, null=True)),
                ('change', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='policies.changeset')),
            ],
            options={
                'ordering': ['cluster', 'namespace', 'kind', 'name'],
                'indexes': [models.Index(fields=['cluster', 'namespace'], name='changeitem_by_place')],
                'constraints': [models.UniqueConstraint(fields=('change', 'cluster', 'kind', 'namespace', 'name'), name='changeitem_once'), models.CheckConstraint(condition=models.Q(('base__isnull', False), ('content__isnull', False), _connector='OR'), name='changeitem_proposes_something')],
            },
        ),
        migrations.CreateModel(
            name='ChangeStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(choices=[('edit', 'edit'), ('describe', 'describe'), ('comment', 'comment'), ('submit', 'submit'), ('withdraw', 'withdraw'), ('approve', 'approve'), ('request_changes', 'request changes'), ('publish', 'publish'), ('start', 'start'), ('finish', 'finish'), ('stop', 'stop'), ('resume', 'resume'), ('revert', 'revert'), ('abandon', 'abandon')], max_length=16)),
                ('state_before', models.CharField(max_length=16)),
                ('state_after', models.CharField(max_length=16)),
                ('user', models.CharField(max_length=254)),
                ('note', models.TextField(blank=True)),
                ('content_hash', models.CharField(max_length=64)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('change', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='policies.changeset')),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.CheckConstraint(condition=models.Q(('step__in', ['edit', 'describe', 'comment', 'submit', 'withdraw', 'approve', 'request_changes', 'publish', 'start', 'finish', 'stop', 'resume', 'revert', 'abandon'])), name='changestep_known')],
            },
        ),
        migrations.RunPython(
            lambda apps, editor: create(editor.connection),
            lambda apps, editor: drop(editor.connection),
        ),
    ]
