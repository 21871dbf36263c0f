"""How Django knows this app."""

from django.apps import AppConfig


class SyncConfig(AppConfig):
    """The app of clusters."""

    name = "sync"
