"""Tokens with name, access and scope in place of knox's own, and service accounts.

Tokens that people have stay valid, with all their rights: they are copied, digests included.
"""

import django.core.validators
import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


OLD_TABLE = "knox_authtoken"


def has_old_table(connection):
    """Whether tokens were knox's own before: the library's table is there."""
    with connection.cursor() as cursor:
        return OLD_TABLE in connection.introspection.table_names(cursor)


def take_over(apps, schema_editor):
    """Copy knox's tokens, and delete them there; the empty table stays, for the way back."""
    if not has_old_table(schema_editor.connection):
        return
    old_tokens = apps.get_model("policies", "KnoxToken").objects.select_related("user")
    ApiToken = apps.get_model("policies", "ApiToken")
    for old in old_tokens.order_by("created", "pk"):
        ApiToken.objects.create(
            digest=old.digest,
            token_key=old.token_key,
            user=old.user,
            expiry=old.expiry,
            name=f"{old.token_key[:8]}…",
            access="write",
            created_by=old.user.username,
        )
        # Creation sets the present time.
        ApiToken.objects.filter(digest=old.digest).update(created=old.created)
    old_tokens.all().delete()


def give_back(apps, schema_editor):
    """Copy tokens without a scope; the others would be worth more there than here."""
    if not has_old_table(schema_editor.connection):
        return
    unlimited = apps.get_model("policies", "ApiToken").objects.filter(
        access="write", cluster="", namespace=""
    )
    columns = ("digest", "token_key", "user_id", "created", "expiry")
    old_tokens = apps.get_model("policies", "KnoxToken").objects
    for token in unlimited.values(*columns):
        old_tokens.create(**token)


class Migration(migrations.Migration):

    dependencies = [
        ('policies', '0004_field_managers'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ServiceAccount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('description', models.CharField(blank=True, max_length=200)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.CharField(editable=False, max_length=150)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='service_account', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['user__username'],
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('digest', models.CharField(max_length=128, primary_key=True, serialize=False)),
                ('token_key', models.CharField(db_index=True, max_length=25)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('expiry', models.DateTimeField(blank=True, null=True)),
                ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('name', models.CharField(max_length=100)),
                ('access', models.CharField(choices=[('read', 'Read'), ('write', 'Write')], default='read', max_length=5)),
                ('cluster', models.CharField(blank=True, help_text="A cluster's name; empty for every cluster.", max_length=253)),
                ('namespace', models.CharField(blank=True, help_text="A namespace's name, or its beginning and *; empty for every namespace.", max_length=63, validators=[django.core.validators.RegexValidator('\\A[a-z0-9]([-a-z0-9]*[a-z0-9])?\\Z|\\A[a-z0-9][-a-z0-9]*\\*\\Z', "a namespace's name, or the beginning of names and *")])),
                ('created_by', models.CharField(blank=True, editable=False, max_length=150)),
                ('last_used', models.DateTimeField(blank=True, editable=False, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='auth_token_set', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created', 'pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('access__in', ['read', 'write'])), name='api_token_access_known')],
            },
        ),
        # Knox's table as rows are read from it here; it is neither created nor deleted.
        migrations.CreateModel(
            name='KnoxToken',
            fields=[
                ('digest', models.CharField(max_length=128, primary_key=True, serialize=False)),
                ('token_key', models.CharField(max_length=25)),
                ('created', models.DateTimeField()),
                ('expiry', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={'managed': False, 'db_table': OLD_TABLE},
        ),
        migrations.RunPython(take_over, give_back),
        migrations.DeleteModel('KnoxToken'),
    ]
