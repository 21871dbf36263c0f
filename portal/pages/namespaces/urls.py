"""URL patterns of a cluster's namespaces."""

from __future__ import annotations

from django.urls import path

from portal.pages.namespaces.list import NamespaceListView
from portal.pages.namespaces.page import NamespacePageView

urlpatterns = [
    path("clusters/<str:cluster>/namespaces/", NamespaceListView.as_view(), name="namespace-list"),
    path(
        "clusters/<str:cluster>/namespaces/<str:namespace>/",
        NamespacePageView.as_view(),
        name="namespace",
    ),
]
