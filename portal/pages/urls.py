"""The addresses of all pages: those of each family."""

from __future__ import annotations

from django.urls import include, path

FAMILIES = (
    "home",
    "access",
    "account",
    "search",
    "decisions",
    "changes",
    "clusters",
    "namespaces",
    "policies",
    "quotas",
)
urlpatterns = [path("", include(f"portal.pages.{family}.urls")) for family in FAMILIES]
