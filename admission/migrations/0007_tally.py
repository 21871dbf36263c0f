"""How many answers there were in each ten minutes."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('admission', '0006_compressed_days'),
    ]

    operations = [
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
            ],
            options={
                'verbose_name_plural': 'tallies',
                'constraints': [models.UniqueConstraint(fields=('start', 'cluster'), name='tally_once')],
            },
        ),
    ]
