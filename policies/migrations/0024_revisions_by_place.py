"""Revisions are found by namespace and time."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Without it the newest changes of a namespace are sought among those of all."""

    dependencies = [
        ("policies", "0023_excluded_namespaces"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="policyrevision",
            index=models.Index(
                fields=["cluster", "namespace", "created", "id"], name="policyrevision_by_place"
            ),
        ),
    ]
