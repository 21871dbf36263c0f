"""Checks of webhooks note which namespaces the installed ones leave out."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Empty until the next check, which runs each minute."""

    dependencies = [
        ('sync', '0002_words'),
    ]

    operations = [
        migrations.AddField(
            model_name='webhookhealth',
            name='left_out',
            field=models.JSONField(blank=True, default=list, help_text='namespaces that the installed validating webhook leaves out'),
        ),
    ]
