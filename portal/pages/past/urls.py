"""The comparison's address; which pages can be shown as of an instant."""

from __future__ import annotations

from django.urls import path

from portal.pages.past.comparison import ComparisonView
from portal.pages.past.lists import PastClustersView, PastPoliciesView, PastQuotasView
from portal.pages.past.places import PastClusterView, PastNamespacesView, PastNamespaceView
from portal.pages.views import PAST

PAST.update(
    {
        "all-policies": PastPoliciesView.as_view(),
        "quota-board": PastQuotasView.as_view(),
        "cluster-list": PastClustersView.as_view(),
        "cluster-detail": PastClusterView.as_view(),
        "namespace-list": PastNamespacesView.as_view(),
        "namespace": PastNamespaceView.as_view(),
        "namespace-policies": PastNamespaceView.as_view(),
    }
)
urlpatterns = [path("compare/", ComparisonView.as_view(), name="compare")]
