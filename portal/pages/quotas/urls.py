"""URL patterns of the quota board and of quota histories."""

from __future__ import annotations

from django.urls import path

from portal.pages.quotas.board import QuotaBoardView
from portal.pages.quotas.history import QuotaHistoryView

urlpatterns = [
    path("quotas/", QuotaBoardView.as_view(), name="quota-board"),
    path("quotas/<str:cluster>/<str:namespace>/", QuotaHistoryView.as_view(), name="quota-story"),
]
