"""Count people's decisions, empty lists and what was told to workers; one waiting run of a kind."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('policies', '0005_clusters_and_sync'),
    ]

    operations = [
        migrations.AddField(
            model_name='synccursor',
            name='empty_lists',
            field=models.PositiveIntegerField(default=0, help_text='complete lists in a row without any of the objects known before'),
        ),
        migrations.AddField(
            model_name='syncedobject',
            name='version',
            field=models.PositiveIntegerField(default=0, help_text='counts what people decided; a pass that read an older one yields'),
        ),
        migrations.AddField(
            model_name='syncrun',
            name='confirmed_by',
            field=models.CharField(blank=True, help_text='who let it delete what it was held for', max_length=254),
        ),
        migrations.AddField(
            model_name='syncrun',
            name='queued',
            field=models.DateTimeField(blank=True, help_text='when a worker was last told of it', null=True),
        ),
        migrations.AddField(
            model_name='syncstate',
            name='policy_revision',
            field=models.PositiveBigIntegerField(default=0, help_text="the cluster's count when our side was last compared"),
        ),
        migrations.AlterField(
            model_name='syncrun',
            name='mode',
            field=models.CharField(choices=[('import', 'Import'), ('sync', 'Sync'), ('preview', 'Preview'), ('watch', 'Watch')], max_length=7),
        ),
        migrations.AddConstraint(
            model_name='syncrun',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'waiting')), fields=('cluster', 'mode'), name='syncrun_waits_once'),
        ),
    ]
