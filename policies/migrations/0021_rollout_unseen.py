"""Whoever started a roll-out is told that it stopped by itself, until they have seen it."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("policies", "0020_approval_rule_red_tests")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="rollout",
            name="unseen",
            field=models.BooleanField(default=False),
        ),
        migrations.AddIndex(
            model_name="rollout",
            index=models.Index(
                condition=models.Q(("unseen", True)), fields=["starter"], name="rollout_unseen"
            ),
        ),
    ]
