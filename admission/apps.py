"""How Django knows this app."""

from django.apps import AppConfig


class AdmissionConfig(AppConfig):
    """The admission app."""

    name = "admission"
