"""How Django knows this app."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """The portal app."""

    name = "portal"
