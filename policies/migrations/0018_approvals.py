"""Rules of approval and their history, checks, approvals and looks of changes.

On SQLite a later migration that rebuilds one of ``TABLES`` or the table of steps drops its
triggers: call ``create`` (here, or in 0013) again then.
"""

from importlib import import_module

import django.core.validators
import django.db.models.deletion
import policies.models.changes.approval_rule
from django.conf import settings
from django.db import migrations, models

TABLES = {
    "policies_approvalrulechange": "changes of approval rules are append-only",
    "policies_changeapproval": "approvals of changes are append-only",
}
STEPS = import_module("policies.migrations.0013_change_sets")
POSTGRESQL_EVENTS = {
    "no_change": "UPDATE OR DELETE ON {table} FOR EACH ROW",
    "no_truncate": "TRUNCATE ON {table} FOR EACH STATEMENT",
}


def create(connection):
    """Create the triggers of this database."""
    with connection.cursor() as cursor:
        for table, refusal in TABLES.items():
            if connection.vendor == "sqlite":
                create_sqlite(cursor, table, refusal)
            elif connection.vendor == "postgresql":
                create_postgresql(cursor, table, refusal)


def create_sqlite(cursor, table, refusal):
    """Refuse all writes of old rows."""
    refuse = f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
    cursor.execute(f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}")
    cursor.execute(f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}")
    # INSERT OR REPLACE deletes the old row without asking the trigger for deletes.
    cursor.execute(
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}"
        f" WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id) {refuse}"
    )


def create_postgresql(cursor, table, refusal):
    """Refuse all writes of old rows."""
    cursor.execute(
        f"CREATE OR REPLACE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN RAISE EXCEPTION '{refusal}' USING ERRCODE = 'integrity_constraint_violation';"
        " END $$"
    )
    for end, event in POSTGRESQL_EVENTS.items():
        cursor.execute(
            f"CREATE TRIGGER {table}_{end} BEFORE {event.format(table=table)}"
            f" EXECUTE FUNCTION {table}_refuse()"
        )
        # ALWAYS: also where a session plays replica, which skips ordinary triggers.
        cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_{end}")


def drop(connection):
    """Drop them: going back, and tests that empty the database."""
    with connection.cursor() as cursor:
        for table in TABLES:
            if connection.vendor == "sqlite":
                for end in ("update", "delete", "replace"):
                    cursor.execute(f"DROP TRIGGER IF EXISTS {table}_no_{end}")
            elif connection.vendor == "postgresql":
                for end in POSTGRESQL_EVENTS:
                    cursor.execute(f"DROP TRIGGER IF EXISTS {table}_{end} ON {table}")


def without_triggers(_apps, editor):
    """SQLite rebuilds the table of steps; PostgreSQL alters it in place."""
    if editor.connection.vendor == "sqlite":
        STEPS.drop(editor.connection)


def with_triggers(_apps, editor):
    """The same triggers as before, on the rebuilt table."""
    if editor.connection.vendor == "sqlite":
        STEPS.create(editor.connection)


class Migration(migrations.Migration):
    """What a change needs before it is published, and who has given it."""

    dependencies = [
        ('policies', '0017_change_item_manager'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ApprovalRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True)),
                ('position', models.PositiveIntegerField(default=0, editable=False)),
                ('enabled', models.BooleanField(default=True)),
                ('kinds', models.JSONField(blank=True, default=list, validators=[policies.models.changes.approval_rule.check_kinds])),
                ('clusters', models.JSONField(blank=True, default=list, validators=[policies.models.changes.approval_rule.check_clusters])),
                ('namespaces', models.JSONField(blank=True, default=list, validators=[policies.models.changes.approval_rule.check_namespaces])),
                ('deletes', models.BooleanField(default=False, help_text='an object is deleted')),
                ('enforces', models.BooleanField(default=False, help_text='an object is set to enforce')),
                ('below_used', models.BooleanField(default=False, help_text='a hard value is set below what is used')),
                ('flips_over', models.PositiveIntegerField(blank=True, help_text='more verdicts of the replay than this would differ', null=True, validators=[django.core.validators.MaxValueValidator(1000000)])),
                ('restarts_over', models.PositiveIntegerField(blank=True, help_text='more running pods than this could not restart', null=True, validators=[django.core.validators.MaxValueValidator(1000000)])),
                ('namespaces_over', models.PositiveIntegerField(blank=True, help_text='it changes more namespaces than this', null=True, validators=[django.core.validators.MaxValueValidator(1000000)])),
                ('approvers', models.PositiveSmallIntegerField(default=1, validators=[django.core.validators.MaxValueValidator(10)])),
                ('role', models.CharField(choices=[('editor', 'editor'), ('approver', 'approver'), ('admin', 'admin')], default='approver', max_length=8)),
                ('for_each_namespace', models.BooleanField(default=True, help_text='so many for each namespace, and not for all of them together')),
                ('checks_green', models.BooleanField(default=False, help_text='no check may fail or wait')),
                ('revision', models.PositiveBigIntegerField(default=0, editable=False)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('updated', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['position', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='ApprovalRuleChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('action', models.CharField(choices=[('created', 'Created'), ('changed', 'Changed'), ('moved', 'Moved'), ('deleted', 'Deleted')], max_length=7)),
                ('rule', models.CharField(max_length=100)),
                ('before', models.JSONField(null=True)),
                ('after', models.JSONField(null=True)),
                ('actor', models.CharField(max_length=254)),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='ChangeApproval',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('grants', models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name='ChangeCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('tests', 'tests'), ('lints', 'lints'), ('base', 'base'), ('replay', 'replay'), ('restarts', 'restarts')], max_length=8)),
                ('content_hash', models.CharField(max_length=64)),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('passed', 'passed'), ('warned', 'warned'), ('failed', 'failed')], max_length=7)),
                ('number', models.PositiveIntegerField(blank=True, null=True)),
                ('words', models.CharField(blank=True, max_length=500)),
                ('user', models.CharField(max_length=254)),
                ('asked', models.DateTimeField()),
                ('updated', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='ChangeLook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('content_hash', models.CharField(max_length=64)),
                ('seen', models.JSONField(default=dict)),
                ('before', models.JSONField(null=True)),
                ('updated', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.RunPython(without_triggers, with_triggers),
        migrations.RemoveConstraint(
            model_name='changestep',
            name='changestep_known',
        ),
        migrations.AddField(
            model_name='changeset',
            name='unreviewed',
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.AlterField(
            model_name='changestep',
            name='step',
            field=models.CharField(choices=[('edit', 'edit'), ('describe', 'describe'), ('comment', 'comment'), ('submit', 'submit'), ('withdraw', 'withdraw'), ('approve', 'approve'), ('pass', 'pass'), ('request_changes', 'request changes'), ('publish', 'publish'), ('publish_now', 'publish now'), ('review', 'review'), ('start', 'start'), ('finish', 'finish'), ('stop', 'stop'), ('resume', 'resume'), ('revert', 'revert'), ('abandon', 'abandon')], max_length=16),
        ),
        migrations.AddIndex(
            model_name='changeset',
            index=models.Index(condition=models.Q(('unreviewed', True)), fields=['-id'], name='changeset_unreviewed'),
        ),
        migrations.AddConstraint(
            model_name='changestep',
            constraint=models.CheckConstraint(condition=models.Q(('step__in', ['edit', 'describe', 'comment', 'submit', 'withdraw', 'approve', 'pass', 'request_changes', 'publish', 'publish_now', 'review', 'start', 'finish', 'stop', 'resume', 'revert', 'abandon'])), name='changestep_known'),
        ),
        migrations.AddConstraint(
            model_name='approvalrule',
            constraint=models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='approvalrule_has_a_name'),
        ),
        migrations.AddConstraint(
            model_name='approvalrule',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['editor', 'approver', 'admin'])), name='approvalrule_role_known'),
        ),
        migrations.AddConstraint(
            model_name='approvalrule',
            constraint=models.CheckConstraint(condition=models.Q(('approvers__lte', 10)), name='approvalrule_few_approvers'),
        ),
        migrations.AddConstraint(
            model_name='approvalrule',
            constraint=models.CheckConstraint(condition=models.Q(('approvers__gt', 0), ('checks_green', True), _connector='OR'), name='approvalrule_asks_for_something'),
        ),
        migrations.AddField(
            model_name='changeapproval',
            name='step',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='approval', to='policies.changestep'),
        ),
        migrations.AddField(
            model_name='changecheck',
            name='change',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='policies.changeset'),
        ),
        migrations.AddField(
            model_name='changelook',
            name='change',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='looks', to='policies.changeset'),
        ),
        migrations.AddField(
            model_name='changelook',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='changecheck',
            index=models.Index(condition=models.Q(('state', 'waiting')), fields=['change'], name='changecheck_waiting'),
        ),
        migrations.AddConstraint(
            model_name='changecheck',
            constraint=models.UniqueConstraint(fields=('change', 'kind'), name='changecheck_once'),
        ),
        migrations.AddConstraint(
            model_name='changecheck',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['tests', 'lints', 'base', 'replay', 'restarts'])), name='changecheck_known'),
        ),
        migrations.AddConstraint(
            model_name='changecheck',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'passed', 'warned', 'failed'])), name='changecheck_state_known'),
        ),
        migrations.AddConstraint(
            model_name='changelook',
            constraint=models.UniqueConstraint(fields=('change', 'user'), name='changelook_once'),
        ),
        migrations.RunPython(with_triggers, without_triggers),
        migrations.RunPython(
            lambda apps, editor: create(editor.connection),
            lambda apps, editor: drop(editor.connection),
        ),
    ]
