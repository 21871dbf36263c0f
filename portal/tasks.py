"""Celery tasks of the portal: the worker's heartbeat, and deleting expired sessions and tokens."""

from __future__ import annotations

from celery import shared_task
from django.core.management import call_command
from django.utils import timezone
from knox.models import get_token_model

from admission.models import BackgroundWork, note_work
from policies.models import SignIn, SignInCount


@shared_task
def note_worker() -> None:
    """Record a heartbeat: a worker runs tasks."""
    note_work(BackgroundWork.Name.WORKER)


@shared_task
def clear_expired() -> None:
    """Delete expired sessions and tokens, old tries to sign in, and the counts of failed ones."""
    call_command("clearsessions")
    get_token_model().objects.filter(expiry__lt=timezone.now()).delete()
    SignInCount.objects.forget_old()
    SignIn.objects.forget_old()
