"""Holds, exports and removals; exports and removals are append-only in the database, too."""

import django.db.models.deletion
from django.db import migrations, models

KEPT = {
    "admission_auditexport": ("audit_export", "exports are append-only"),
    "admission_retentionrun": ("audit_retention", "retention runs are append-only"),
}


def create(connection):
    """Create the triggers of this database."""
    with connection.cursor() as cursor:
        for table, (name, refusal) in KEPT.items():
            if connection.vendor == "sqlite":
                create_sqlite(cursor, table, name, refusal)
            elif connection.vendor == "postgresql":
                create_postgresql(cursor, table, name, refusal)


def create_sqlite(cursor, table, name, refusal):
    """No change, no removal, and no INSERT OR REPLACE."""
    refuse = f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
    cursor.execute(f"CREATE TRIGGER {name}_no_update BEFORE UPDATE ON {table} {refuse}")
    cursor.execute(f"CREATE TRIGGER {name}_no_delete BEFORE DELETE ON {table} {refuse}")
    cursor.execute(
        f"CREATE TRIGGER {name}_no_replace BEFORE INSERT ON {table}"
        f" WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id) {refuse}"
    )


def create_postgresql(cursor, table, name, refusal):
    """No change, no removal, no emptying, also where a session plays replica."""
    cursor.execute(
        f"CREATE OR REPLACE FUNCTION {name}_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN RAISE EXCEPTION '{refusal}'"
        " USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    for trigger, event, each in (
        (f"{name}_no_change", "UPDATE OR DELETE", "ROW"),
        (f"{name}_no_truncate", "TRUNCATE", "STATEMENT"),
    ):
        cursor.execute(
            f"CREATE TRIGGER {trigger} BEFORE {event} ON {table}"
            f" FOR EACH {each} EXECUTE FUNCTION {name}_refuse_change()"
        )
        cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}")


def drop(connection):
    """Drop them: going back, and tests that empty the database."""
    with connection.cursor() as cursor:
        for table, (name, _) in KEPT.items():
            for end in ("no_update", "no_delete", "no_replace", "no_change", "no_truncate"):
                if connection.vendor == "sqlite":
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name}_{end}")
                elif connection.vendor == "postgresql":
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name}_{end} ON {table}")


class Migration(migrations.Migration):
    """Three small tables."""

    dependencies = [("admission", "0003_daily_partitions")]

    operations = [
        migrations.CreateModel(
            name="AuditHold",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cluster", models.CharField(max_length=253)),
                ("namespace", models.CharField(blank=True, help_text="Empty: all of the cluster.", max_length=253)),
                ("first_day", models.DateField(verbose_name="from (UTC)")),
                ("last_day", models.DateField(blank=True, help_text="With this day. Empty: no end.", null=True, verbose_name="to (UTC)")),
                ("reason", models.TextField()),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("created_by", models.CharField(blank=True, editable=False, max_length=253, verbose_name="who")),
                ("released", models.DateTimeField(blank=True, editable=False, null=True)),
                ("released_by", models.CharField(blank=True, editable=False, max_length=253)),
            ],
            options={"verbose_name": "legal hold", "ordering": ["-created", "-id"]},
        ),
        migrations.CreateModel(
            name="AuditExport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("number", models.PositiveSmallIntegerField(default=1)),
                ("path", models.CharField(help_text="Within the folder of exports.", max_length=1024)),
                ("sha256", models.CharField(max_length=64, verbose_name="SHA-256 of the file")),
                ("rows", models.PositiveBigIntegerField()),
                ("finished", models.DateTimeField()),
            ],
            options={
                "verbose_name": "export",
                "ordering": ["-day", "-number"],
                "constraints": [
                    models.UniqueConstraint(fields=("day", "number"), name="audit_export_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="RetentionRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("day", models.DateField()),
                ("verdicts", models.CharField(choices=[("allowed", "Allowed and mutated"), ("denied", "Denied"), ("all", "All")], max_length=8)),
                ("removed", models.PositiveBigIntegerField(verbose_name="rows removed")),
                ("kept", models.PositiveBigIntegerField(verbose_name="rows kept")),
                ("held", models.PositiveBigIntegerField(verbose_name="of these by a hold")),
                ("export_sha256", models.CharField(max_length=64, verbose_name="SHA-256 of the export")),
                ("export", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="removals", to="admission.auditexport")),
            ],
            options={"verbose_name": "retention run", "ordering": ["-id"]},
        ),
        migrations.RunPython(
            lambda apps, editor: create(editor.connection),
            lambda apps, editor: drop(editor.connection),
        ),
    ]
