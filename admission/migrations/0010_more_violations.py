"""How many violations a decision found beside those that it lists.

Columns are added by hand: on SQLite Django would rebuild the table, and lose its triggers.
"""

from django.db import migrations, models

TABLE = "admission_auditevent"
COLUMNS = ("more_violations", "more_observed")


class Migration(migrations.Migration):
    dependencies = [("admission", "0009_background_work")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f'ALTER TABLE {TABLE} ADD COLUMN "{name}" integer NOT NULL DEFAULT 0',
                    f'ALTER TABLE {TABLE} DROP COLUMN "{name}"',
                )
                for name in COLUMNS
            ],
            state_operations=[
                migrations.AddField("auditevent", name, models.IntegerField(default=0))
                for name in COLUMNS
            ],
        )
    ]
