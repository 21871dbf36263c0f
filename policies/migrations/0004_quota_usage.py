"""Give used amounts a row of their own for each quota; let charges and usage begin with the cluster.

The amounts move from the rows of the quotas into ``QuotaUsage``; a charge finds its quota by uid,
so that nothing has to be rewritten when a quota is deleted or restored.
"""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.models import F

BATCH = 1000
# Django goes on by one column alone, which the sequence, or the quota, keeps unique. Every key has
# the cluster, but it leads in one index of charges only: while a table is small, and its plans are
# made, nothing else tells the planner which of several indexes finds an object.
POSTGRESQL = (
    "ALTER TABLE policies_quotausage DROP CONSTRAINT policies_quotausage_pkey",
    "ALTER TABLE policies_quotausage ADD PRIMARY KEY (quota_id, cluster_id)",
    "ALTER TABLE policies_charge DROP CONSTRAINT policies_charge_pkey",
    "ALTER TABLE policies_charge ADD PRIMARY KEY (id, cluster_id)",
    # Room on the page for new versions of a row: no index has to follow an update.
    "ALTER TABLE policies_quotausage SET (fillfactor = 30, autovacuum_vacuum_threshold = 1000)",
    "ALTER TABLE policies_charge SET (fillfactor = 90)",
)
POSTGRESQL_BACK = (
    "ALTER TABLE policies_charge DROP CONSTRAINT policies_charge_pkey",
    "ALTER TABLE policies_charge ADD PRIMARY KEY (id)",
    "ALTER TABLE policies_charge RESET (fillfactor)",
)


def key_by_cluster(apps, editor):
    """Put the cluster into the primary keys, where the database can."""
    if editor.connection.vendor == "postgresql":
        for statement in POSTGRESQL:
            editor.execute(statement)


def key_by_number(apps, editor):
    """Go back to Django's own key."""
    if editor.connection.vendor == "postgresql":
        for statement in POSTGRESQL_BACK:
            editor.execute(statement)


def move_used(apps, editor):
    """Collect what the rows of each quota have used; a charge was reserved when it last changed."""
    quotas = apps.get_model("policies", "ResourceQuota").objects.order_by("id")
    usage = apps.get_model("policies", "QuotaUsage")
    made = []
    for quota in quotas.select_related("namespace").prefetch_related("rows").iterator(BATCH):
        used = {row.resource: str(row.used) for row in quota.rows.all() if row.used is not None}
        made.append(
            usage(
                quota=quota,
                quota_uid=quota.uid,
                cluster_id=quota.namespace.cluster_id,
                namespace=quota.namespace.name,
                used=used,
            )
        )
    usage.objects.bulk_create(made, batch_size=BATCH)
    apps.get_model("policies", "Charge").objects.update(reserved_at=F("updated"))
    check_now(editor)


def give_back_used(apps, editor):
    """Give the amounts back to the rows, and to each charge the number of its quota."""
    for usage in apps.get_model("policies", "QuotaUsage").objects.select_related("quota"):
        for row in usage.quota.rows.all():
            row.used = usage.used.get(row.resource)
            row.save(update_fields=["used"])
    check_now(editor)


def find_quotas_by_number(apps, editor):
    """Charges name their quota by number again."""
    charges = apps.get_model("policies", "Charge").objects
    for quota in apps.get_model("policies", "ResourceQuota").objects.all():
        charges.filter(quota_uid=quota.uid).update(quota=quota)
    check_now(editor)


def check_now(editor):
    """Have foreign keys checked: PostgreSQL changes no table that has checks waiting."""
    if editor.connection.vendor == "postgresql":
        editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


class Migration(migrations.Migration):
    """Keys, then contents, then what is not needed any more."""

    dependencies = [("policies", "0003_counted_revisions")]

    operations = [
        migrations.CreateModel(
            name="QuotaUsage",
            fields=[
                (
                    "quota",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="usage",
                        serialize=False,
                        to="policies.resourcequota",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="policies.cluster",
                    ),
                ),
                ("quota_uid", models.UUIDField()),
                ("namespace", models.CharField(max_length=63)),
                ("used", models.JSONField(default=dict)),
            ],
            options={"ordering": ["quota_id"], "verbose_name_plural": "quota usage"},
        ),
        migrations.AddIndex(
            model_name="quotausage",
            index=models.Index(fields=["namespace", "cluster"], name="quotausage_by_namespace"),
        ),
        migrations.AlterModelOptions(name="charge", options={"ordering": ["cluster_id", "id"]}),
        migrations.RemoveConstraint(model_name="charge", name="charge_once_per_object"),
        migrations.RemoveIndex(model_name="charge", name="charge_by_object"),
        migrations.RemoveIndex(model_name="charge", name="charge_by_age"),
        migrations.AddField(
            model_name="charge",
            name="reserved_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                editable=False,
                help_text="when it was last admitted",
            ),
        ),
        migrations.AlterField(
            model_name="charge",
            name="created",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), editable=False
            ),
        ),
        migrations.AlterField(
            model_name="charge",
            name="updated",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), editable=False
            ),
        ),
        migrations.AlterField(
            model_name="charge",
            name="cluster",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="charges",
                to="policies.cluster",
            ),
        ),
        migrations.RunPython(migrations.RunPython.noop, find_quotas_by_number),
        migrations.RemoveField(model_name="charge", name="quota"),
        # No column: Django reads the quota by its uid.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name="charge",
                    name="quota",
                    field=models.ForeignObject(
                        from_fields=["quota_uid"],
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="charges",
                        to="policies.resourcequota",
                        to_fields=["uid"],
                    ),
                ),
            ]
        ),
        migrations.AddIndex(
            model_name="charge",
            index=models.Index(fields=["quota_uid", "cluster"], name="charge_by_quota"),
        ),
        migrations.AddIndex(
            model_name="charge",
            index=models.Index(
                condition=models.Q(("state", "reserved")),
                fields=["namespace", "cluster"],
                name="charge_unconfirmed",
            ),
        ),
        migrations.AddConstraint(
            model_name="charge",
            constraint=models.UniqueConstraint(
                fields=("cluster", "resource", "object_uid", "quota_uid"),
                name="charge_once_per_object",
            ),
        ),
        migrations.RunPython(key_by_cluster, key_by_number),
        migrations.RunPython(move_used, give_back_used),
        migrations.RemoveField(model_name="resourcequotarow", name="used"),
    ]
