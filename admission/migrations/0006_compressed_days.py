"""The days that were there before their record's JSON became text: compressed as later ones are.

Setting how a column is compressed says nothing to partitions that exist. Rows stay as they are.
"""

from importlib import import_module

from django.db import migrations

from admission.models import partitions

before = import_module("admission.migrations.0003_daily_partitions")


def compress(apps, editor):
    """Say to each day what was said to the whole: lz4 takes a third of the server's own time."""
    connection = editor.connection
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 'lz4' = ANY (enumvals) FROM pg_settings"
            " WHERE name = 'default_toast_compression'"
        )
        if not (cursor.fetchone() or (False,))[0]:
            return
        changes = ", ".join(f'ALTER "{name}" SET COMPRESSION lz4' for name in before.LONG)
        for day in partitions.days(connection):
            cursor.execute(f"ALTER TABLE {partitions.name(day)} {changes}")


class Migration(migrations.Migration):
    """On PostgreSQL alone."""

    dependencies = [("admission", "0005_kept_json")]

    operations = [migrations.RunPython(compress, migrations.RunPython.noop)]
