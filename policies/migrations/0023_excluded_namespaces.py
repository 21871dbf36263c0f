"""Clusters name the namespaces that their webhooks leave out."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Empty by default: nothing is left out that was not."""

    dependencies = [
        ('policies', '0022_journal_statistics'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='excluded_namespaces',
            field=models.JSONField(blank=True, default=list, help_text='namespaces that the webhooks leave out: the portal enforces nothing there'),
        ),
    ]
