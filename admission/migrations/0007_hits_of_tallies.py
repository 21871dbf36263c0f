"""Tallies of hits: pages read no rows of the record to tell what a policy found."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Null in old rows: of their time decisions are read, as before."""

    dependencies = [
        ('admission', '0006_day_tallies'),
    ]

    operations = [
        migrations.AddField(
            model_name='tally',
            name='hits',
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name='tally',
            name='namespaces',
            field=models.JSONField(null=True),
        ),
    ]
