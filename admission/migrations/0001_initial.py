"""Tables of the record, its retention, its counts, saved views, and background work."""

import admission.models.columns
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditHold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.CharField(max_length=253)),
                ('namespace', models.CharField(blank=True, help_text='Empty: all of the cluster.', max_length=253)),
                ('first_day', models.DateField(verbose_name='from (UTC)')),
                ('last_day', models.DateField(blank=True, help_text='With this day. Empty: no end.', null=True, verbose_name='to (UTC)')),
                ('reason', models.TextField()),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.CharField(blank=True, editable=False, max_length=253, verbose_name='who')),
                ('released', models.DateTimeField(blank=True, editable=False, null=True)),
                ('released_by', models.CharField(blank=True, editable=False, max_length=253)),
            ],
            options={
                'verbose_name': 'legal hold',
                'ordering': ['-created', '-id'],
            },
        ),
        migrations.CreateModel(
            name='BackgroundWork',
            fields=[
                ('name', models.CharField(choices=[('worker', 'Worker'), ('beat', 'Beat'), ('export', 'Export'), ('retention', 'Retention')], max_length=16, primary_key=True, serialize=False)),
                ('seen', models.DateTimeField()),
                ('problem', models.TextField(blank=True, default='')),
            ],
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.CharField(editable=False, max_length=16, primary_key=True, serialize=False, verbose_name='decision')),
                ('created', models.DateTimeField(verbose_name='time')),
                ('duration_us', models.PositiveBigIntegerField(verbose_name='duration (µs)')),
                ('cluster', models.CharField(max_length=253)),
                ('phase', models.CharField(max_length=8)),
                ('request_uid', models.CharField(db_index=True, max_length=253, verbose_name='request UID')),
                ('operation', models.CharField(blank=True, max_length=16)),
                ('api_group', models.CharField(blank=True, max_length=253, verbose_name='API group')),
                ('kind', models.CharField(blank=True, max_length=253)),
                ('resource', models.CharField(blank=True, max_length=253)),
                ('sub_resource', models.CharField(blank=True, max_length=253)),
                ('namespace', models.CharField(blank=True, max_length=253)),
                ('name', models.CharField(blank=True, max_length=253)),
                ('object_uid', models.CharField(blank=True, max_length=253, verbose_name='object UID')),
                ('user', models.CharField(blank=True, max_length=253)),
                ('groups', admission.models.columns.KeptJSONField(default=list)),
                ('dry_run', models.BooleanField(default=False)),
                ('client', models.CharField(blank=True, max_length=253)),
                ('verdict', models.CharField(choices=[('allowed', 'Allowed'), ('mutated', 'Mutated'), ('denied', 'Denied')], max_length=8)),
                ('code', models.PositiveSmallIntegerField()),
                ('reason', models.CharField(blank=True, max_length=64, verbose_name='status reason')),
                ('message', models.TextField(blank=True)),
                ('reasons', models.TextField(blank=True)),
                ('policy_revision', models.BigIntegerField(default=0)),
                ('policies', admission.models.columns.KeptJSONField(default=list)),
                ('policy_names', models.TextField(blank=True)),
                ('violations', admission.models.columns.KeptJSONField(default=list)),
                ('observed', admission.models.columns.KeptJSONField(default=list)),
                ('trace', admission.models.columns.KeptJSONField(default=list)),
                ('patch', admission.models.columns.KeptJSONField(default=list)),
                ('warnings', admission.models.columns.KeptJSONField(default=list)),
                ('charges', admission.models.columns.KeptJSONField(default=list)),
                ('request', admission.models.columns.KeptJSONField(default=dict)),
                ('more_violations', models.IntegerField(db_default=0, default=0)),
                ('more_observed', models.IntegerField(db_default=0, default=0)),
            ],
            options={
                'verbose_name': 'decision',
                'ordering': ['-created', '-id'],
                'indexes': [models.Index(fields=['created', 'id'], name='audit_time'), models.Index(fields=['cluster', 'created', 'id'], name='audit_cluster'), models.Index(fields=['namespace', 'created', 'id'], name='audit_place'), models.Index(fields=['verdict', 'created', 'id'], name='audit_verdict'), models.Index(fields=['name'], name='audit_name')],
                'constraints': [models.CheckConstraint(condition=models.Q(('verdict__in', ['allowed', 'mutated', 'denied'])), name='audit_known_verdict')],
            },
        ),
        migrations.CreateModel(
            name='AuditExport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('number', models.PositiveSmallIntegerField(default=1)),
                ('path', models.CharField(help_text='Within the folder of exports.', max_length=1024)),
                ('sha256', models.CharField(max_length=64, verbose_name='SHA-256 of the file')),
                ('rows', models.PositiveBigIntegerField()),
                ('finished', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'export',
                'ordering': ['-day', '-number'],
                'constraints': [models.UniqueConstraint(fields=('day', 'number'), name='audit_export_once')],
            },
        ),
        migrations.CreateModel(
            name='RetentionRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('day', models.DateField()),
                ('verdicts', models.CharField(choices=[('allowed', 'Allowed and mutated'), ('denied', 'Denied'), ('all', 'All')], max_length=8)),
                ('removed', models.PositiveBigIntegerField(verbose_name='rows removed')),
                ('kept', models.PositiveBigIntegerField(verbose_name='rows kept')),
                ('held', models.PositiveBigIntegerField(verbose_name='of these by a hold')),
                ('export_sha256', models.CharField(max_length=64, verbose_name='SHA-256 of the export')),
                ('export', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='removals', to='admission.auditexport')),
            ],
            options={
                'verbose_name': 'retention run',
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Tally',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.CharField(max_length=253)),
                ('start', models.DateTimeField()),
                ('allowed', models.PositiveIntegerField(default=0)),
                ('mutated', models.PositiveIntegerField(default=0)),
                ('denied', models.PositiveIntegerField(default=0)),
                ('dry_run', models.PositiveIntegerField(default=0)),
                ('would_deny', models.PositiveIntegerField(default=0)),
            ],
            options={
                'verbose_name_plural': 'tallies',
                'constraints': [models.UniqueConstraint(fields=('start', 'cluster'), name='tally_once')],
            },
        ),
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('query', models.CharField(blank=True, max_length=2000)),
                ('is_shared', models.BooleanField(default=False, verbose_name='shared')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name', 'pk'],
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='saved_view_once')],
            },
        ),
    ]
