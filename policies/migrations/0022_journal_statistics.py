"""PostgreSQL: statistics of which amounts of the ledger's journal are equal."""

from django.db import migrations

NAME = "policies_ledgerentry_amounts"


def create(apps, editor):
    """The usage of the past groups equal entries: without these, the planner expects none."""
    if editor.connection.vendor == "postgresql":
        editor.execute(
            f"CREATE STATISTICS {NAME} (ndistinct)"
            " ON quota_uid, before, after FROM policies_ledgerentry"
        )


def drop(apps, editor):
    """Remove them again."""
    if editor.connection.vendor == "postgresql":
        editor.execute(f"DROP STATISTICS {NAME}")


class Migration(migrations.Migration):
    """The database adds up the journal with several workers."""

    dependencies = [
        ("policies", "0021_rollout_unseen"),
    ]

    operations = [
        migrations.RunPython(create, drop),
    ]
