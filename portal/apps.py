"""Django app configuration of the portal."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """The portal app."""

    name = "portal"

    def ready(self) -> None:
        """Let the checks be known, and what has to happen when an account changes."""
        import_module("portal.checks")
        import_module("portal.auth.accounts")
        import_module("portal.pages.policies.restart_impact")
