"""SyncConfig, Django's app configuration of sync."""

from django.apps import AppConfig


class SyncConfig(AppConfig):
    """The app that holds the tables and commands about clusters."""

    name = "sync"
