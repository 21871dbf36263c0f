"""URL patterns of kept tests."""

from __future__ import annotations

from django.urls import path

from portal.pages.kept_tests.list import KeptTestListView, KeptTestsAsYaml
from portal.pages.kept_tests.new import NewKeptTestView
from portal.pages.kept_tests.page import KeptTestPageView

urlpatterns = [
    path("tests/", KeptTestListView.as_view(), name="kept-tests"),
    path("tests/export/", KeptTestsAsYaml.as_view(), name="kept-test-export"),
    path(
        "tests/new/<str:cluster>/<str:namespace>/", NewKeptTestView.as_view(), name="kept-test-new"
    ),
    path("tests/<int:pk>/", KeptTestPageView.as_view(), name="kept-test"),
]
