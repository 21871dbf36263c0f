"""Put the cluster into the primary keys of the ledger, where the database can.

Django goes on by one column alone, which the sequence, or the quota, keeps unique. Every key has
the cluster, but it leads in one index of charges only: while a table is small, and its plans are
made, nothing else tells the planner which of several indexes finds an object.
"""

from django.db import migrations

FORWARD = (
    "ALTER TABLE policies_quotausage DROP CONSTRAINT policies_quotausage_pkey",
    "ALTER TABLE policies_quotausage ADD PRIMARY KEY (quota_id, cluster_id)",
    "ALTER TABLE policies_charge DROP CONSTRAINT policies_charge_pkey",
    "ALTER TABLE policies_charge ADD PRIMARY KEY (id, cluster_id)",
    # Room on the page for new versions of a row: no index has to follow an update.
    "ALTER TABLE policies_quotausage SET (fillfactor = 30, autovacuum_vacuum_threshold = 1000)",
    "ALTER TABLE policies_charge SET (fillfactor = 90)",
)
BACK = (
    "ALTER TABLE policies_quotausage DROP CONSTRAINT policies_quotausage_pkey",
    "ALTER TABLE policies_quotausage ADD PRIMARY KEY (quota_id)",
    "ALTER TABLE policies_quotausage RESET (fillfactor, autovacuum_vacuum_threshold)",
    "ALTER TABLE policies_charge DROP CONSTRAINT policies_charge_pkey",
    "ALTER TABLE policies_charge ADD PRIMARY KEY (id)",
    "ALTER TABLE policies_charge RESET (fillfactor)",
)


def run(statements):
    """Make what runs these statements on PostgreSQL."""

    def execute(apps, editor):
        if editor.connection.vendor == "postgresql":
            for statement in statements:
                editor.execute(statement)

    return execute


class Migration(migrations.Migration):
    """The keys that the ledger's statements rely on."""

    dependencies = [("policies", "0002_append_only")]

    operations = [migrations.RunPython(run(FORWARD), run(BACK))]
