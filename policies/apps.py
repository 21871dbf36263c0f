"""PoliciesConfig, Django's app configuration of policies."""

from django.apps import AppConfig


class PoliciesConfig(AppConfig):
    """The policies app."""

    name = "policies"
