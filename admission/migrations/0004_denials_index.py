"""The index of denials on PostgreSQL holds their namespaces and reasons: counts read it alone.

The new index is built beside the old one, partition by partition, while decisions are written.
Reasons are words of a fixed list: with the longest names an entry stays below the limit of a page.
The way back leaves it, for the version before reads it as well.
"""

from django.db import migrations, transaction

from admission.models import partitions
from admission.models.partitions import LOCK_TIMEOUT, TABLE

INDEX = "audit_verdict"
NEW_INDEX = "audit_denials"
DEFINITION = "(created, id, cluster) INCLUDE (namespace, reasons) WHERE verdict = 'denied'"


def include(apps, editor):
    """Replace the index; an attempt that was interrupted begins anew."""
    if editor.connection.vendor != "postgresql":
        return
    with editor.connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef(%s::regclass)", [INDEX])
        if "INCLUDE" in cursor.fetchone()[0]:
            return
        cursor.execute(f"DROP INDEX IF EXISTS {NEW_INDEX}")
        # A partition that is attached from here on gets its part of the index by itself.
        cursor.execute(f"CREATE INDEX {NEW_INDEX} ON ONLY {TABLE} {DEFINITION}")
        for day in partitions.days(editor.connection):
            part, table = f"{partitions.name(day)}_denials", partitions.name(day)
            cursor.execute(f"DROP INDEX IF EXISTS {part}")
            cursor.execute(f"CREATE INDEX CONCURRENTLY {part} ON {table} {DEFINITION}")
            cursor.execute(f"ALTER INDEX {NEW_INDEX} ATTACH PARTITION {part}")
        with transaction.atomic(editor.connection.alias):
            # Behind a long read this lock would hold up the decisions that come after it.
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
            cursor.execute(f"DROP INDEX {INDEX}")
            cursor.execute(f"ALTER INDEX {NEW_INDEX} RENAME TO {INDEX}")


class Migration(migrations.Migration):
    """Counts of denials by reason or namespace read no rows."""

    atomic = False  # an index cannot be built beside writers inside a transaction

    dependencies = [("admission", "0003_replays")]

    operations = [migrations.RunPython(include, migrations.RunPython.noop)]
