"""URL patterns of all pages, family by family."""

from __future__ import annotations

from django.urls import include, path

FAMILIES = (
    "home",
    "access",
    "account",
    "search",
    "decisions",
    "changes",
    "classes",
    "kept_tests",
    "clusters",
    "namespaces",
    "policies",
    "quotas",
    "replays",
    "shell",
    "parts",
    "past",
)
urlpatterns = [path("", include(f"portal.pages.{family}.urls")) for family in FAMILIES]
