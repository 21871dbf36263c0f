"""URL pattern of the page of parts."""

from __future__ import annotations

from django.urls import path

from portal.pages.parts.page import PartsView

urlpatterns = [path("parts/", PartsView.as_view(), name="parts")]
