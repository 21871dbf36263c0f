"""URL patterns of the quota board, of quota histories and of journals."""

from __future__ import annotations

from django.urls import path

from portal.pages.quotas.board import QuotaBoardView
from portal.pages.quotas.history import QuotaHistoryView
from portal.pages.quotas.journal import QuotaJournalPage

urlpatterns = [
    path("quotas/", QuotaBoardView.as_view(), name="quota-board"),
    path("quotas/<str:cluster>/<str:namespace>/", QuotaHistoryView.as_view(), name="quota-story"),
    path(
        "quotas/<str:cluster>/<str:namespace>/<str:quota>/journal/",
        QuotaJournalPage.as_view(),
        name="quota-journal",
    ),
]
