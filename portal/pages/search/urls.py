"""URL pattern of the command palette."""

from __future__ import annotations

from django.urls import path

from portal.pages.search.palette import FindView

urlpatterns = [
    path("find/", FindView.as_view(), name="find"),
]
