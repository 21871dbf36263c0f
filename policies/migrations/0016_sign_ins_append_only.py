"""Tries to sign in, which the database itself refuses to change, or to remove before their time.

The trigger compares the age of a row, so the removal of old rows needs no permission of its own. It
lets rows go a day before ``SignIn.KEPT``, for the clocks of the portal and of the database differ.
An account with tries is not deleted with them (PROTECT): it is deactivated. On SQLite a later
migration that rebuilds the table drops its triggers: call ``create`` again then (a test looks for
them after all migrations).
"""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

TABLE = "policies_signin"
REFUSAL = "tries to sign in are append-only"
KEPT = "89 days"
REFUSE = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
SQLITE_TRIGGERS = (
    f"CREATE TRIGGER signin_no_update BEFORE UPDATE ON {TABLE} {REFUSE}",
    f"CREATE TRIGGER signin_no_delete BEFORE DELETE ON {TABLE}"
    f" WHEN OLD.created >= datetime('now', '-{KEPT}') {REFUSE}",
    # INSERT OR REPLACE deletes the old row without asking the trigger for deletes.
    f"CREATE TRIGGER signin_no_replace BEFORE INSERT ON {TABLE}"
    f" WHEN EXISTS (SELECT 1 FROM {TABLE} WHERE id = NEW.id) {REFUSE}",
)
POSTGRESQL_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION signin_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF OLD.created < now() - interval '{KEPT}' THEN
                RETURN OLD;
            END IF;
        END IF;
        RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'integrity_constraint_violation';
    END $$"""
POSTGRESQL_TRIGGERS = {
    "signin_no_change": f"UPDATE OR DELETE ON {TABLE} FOR EACH ROW",
    "signin_no_truncate": f"TRUNCATE ON {TABLE} FOR EACH STATEMENT",
}


def create(connection):
    """Create the triggers of this database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for statement in SQLITE_TRIGGERS:
                cursor.execute(statement)
        elif connection.vendor == "postgresql":
            cursor.execute(POSTGRESQL_FUNCTION)
            for name, event in POSTGRESQL_TRIGGERS.items():
                cursor.execute(
                    f"CREATE TRIGGER {name} BEFORE {event}"
                    " EXECUTE FUNCTION signin_refuse_change()"
                )
                # ALWAYS: also where a session plays replica, which skips ordinary triggers.
                cursor.execute(f"ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {name}")


def drop(connection):
    """Drop them: going back, and tests that empty the database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for end in ("update", "delete", "replace"):
                cursor.execute(f"DROP TRIGGER IF EXISTS signin_no_{end}")
        elif connection.vendor == "postgresql":
            for name in POSTGRESQL_TRIGGERS:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {TABLE}")


class Migration(migrations.Migration):
    """No try to sign in is changed, nor removed before its time."""

    dependencies = [
        ('policies', '0015_sign_ins'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name='signin',
            name='user',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='sign_ins', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='signin',
            name='created',
            field=models.DateTimeField(db_index=True, default=django.utils.timezone.now, editable=False),
        ),
        migrations.RunPython(
            lambda apps, editor: create(editor.connection),
            lambda apps, editor: drop(editor.connection),
        ),
    ]
