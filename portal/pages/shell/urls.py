"""URL patterns of the navigation's own pages, and of its counts."""

from __future__ import annotations

from django.urls import path

from portal.pages.shell.counts import CountsView
from portal.pages.shell.entries import ImportEntry

urlpatterns = [
    path("import/", ImportEntry.as_view(), name="import-policies"),
    path("counts/", CountsView.as_view(), name="counts"),
]
