"""Tallies of whole days, by the values of fields that no index of the record has."""

from django.db import migrations, models


def compare_by_bytes(apps, editor):
    """PostgreSQL: a beginning of a value is a range of the index, as it is in the record."""
    if editor.connection.vendor == "postgresql":
        editor.execute(
            'ALTER TABLE admission_daytally ALTER value TYPE varchar(1024) COLLATE "C"'
        )


class Migration(migrations.Migration):
    """Counts of decisions by user, reason, policy and the like read no rows of past days."""

    dependencies = [
        ('admission', '0005_words'),
    ]

    operations = [
        migrations.CreateModel(
            name='DayTally',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField(db_index=True)),
                ('cluster', models.CharField(blank=True, max_length=253)),
                ('field', models.CharField(blank=True, max_length=16)),
                ('value', models.CharField(blank=True, max_length=1024)),
                ('number', models.PositiveBigIntegerField()),
            ],
            options={
                'verbose_name_plural': 'day tallies',
                'constraints': [models.UniqueConstraint(fields=('field', 'value', 'day', 'cluster'), name='day_tally_once')],
            },
        ),
        migrations.RunPython(compare_by_bytes, migrations.RunPython.noop),
    ]
