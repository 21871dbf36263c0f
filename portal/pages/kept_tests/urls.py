"""URL patterns of kept tests."""

from __future__ import annotations

from django.urls import path

from portal.pages.kept_tests.list import KeptTestListView
from portal.pages.kept_tests.page import KeptTestPageView

urlpatterns = [
    path("tests/", KeptTestListView.as_view(), name="kept-tests"),
    path("tests/<int:pk>/", KeptTestPageView.as_view(), name="kept-test"),
]
