"""URL patterns of the command palette and of the page of its results."""

from __future__ import annotations

from django.urls import path

from portal.pages.search.palette import FindView, FoundView

urlpatterns = [
    path("find/", FindView.as_view(), name="find"),
    path("find/all/", FoundView.as_view(), name="found"),
]
