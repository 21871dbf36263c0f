"""Django app configuration of sync."""

from django.apps import AppConfig


class SyncConfig(AppConfig):
    """The app of clusters."""

    name = "sync"
