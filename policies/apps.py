"""How Django knows this app."""

from django.apps import AppConfig


class PoliciesConfig(AppConfig):
    """The policies app."""

    name = "policies"
