"""What the portal does now and then."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.utils import timezone
from knox.models import get_token_model

from policies.models import SignIn
from policies.models.credentials import KEPT
from portal.celery import app
from portal.tasks import clear_expired


@pytest.mark.django_db
def test_expired_sessions_and_tokens_and_old_tries_to_sign_in_are_forgotten() -> None:
    user = get_user_model().objects.create_user("ada")
    tokens, gone = get_token_model().objects, timezone.now() - timedelta(days=1)
    kept, _ = tokens.create(user=user)
    old, _ = tokens.create(user=user)
    tokens.filter(pk=old.pk).update(expiry=gone)
    Session.objects.create(session_key="old", session_data="", expire_date=gone)
    long_ago = timezone.now() - KEPT - timedelta(hours=1)
    SignIn.objects.create(user=user, way="password", outcome="failed", created=long_ago)
    SignIn.objects.create(user=user, way="password", outcome="signed-in")
    clear_expired()
    assert list(tokens.all()) == [kept]
    assert not Session.objects.exists()
    assert [each.outcome for each in SignIn.objects.all()] == ["signed-in"]


def test_every_task_that_beat_starts_is_known_to_the_worker() -> None:
    app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert scheduled <= set(app.tasks)
