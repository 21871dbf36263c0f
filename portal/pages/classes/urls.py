"""URL patterns of namespace classes."""

from __future__ import annotations

from django.urls import path

from portal.pages.classes.editor import ClassEditorView, NewClassView
from portal.pages.classes.list import ClassListView
from portal.pages.classes.page import ClassPageView

urlpatterns = [
    path("namespace-classes/", ClassListView.as_view(), name="class-list"),
    path("namespace-classes/-/new/", NewClassView.as_view(), name="class-new"),
    path("namespace-classes/<str:name>/", ClassPageView.as_view(), name="class-page"),
    path("namespace-classes/<str:name>/edit/", ClassEditorView.as_view(), name="class-edit"),
]
