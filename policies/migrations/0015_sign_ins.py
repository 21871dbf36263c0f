"""Tries to sign in, of each account and of names that no account has."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('policies', '0014_words'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SignIn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('way', models.CharField(choices=[('password', 'password'), ('invitation', 'link of an invitation'), ('api', 'password, over the API'), ('demo', 'chosen in the demo')], max_length=10)),
                ('address', models.CharField(blank=True, max_length=45)),
                ('outcome', models.CharField(choices=[('signed-in', 'signed in'), ('failed', 'failed')], max_length=9)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='sign_ins', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created', '-pk'],
                'indexes': [models.Index(fields=['user', '-created'], name='signin_of_user')],
            },
        ),
    ]
