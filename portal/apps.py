"""PortalConfig, Django's app configuration of the portal; imports checks and signal receivers."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """The portal's pages, server and settings, as Django sees them."""

    name = "portal"

    def ready(self) -> None:
        """Import the modules that register system checks and signal receivers."""
        import_module("portal.checks")
        import_module("portal.auth.accounts")
        import_module("portal.pages.policies.restart_impact")
