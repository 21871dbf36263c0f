"""URL patterns of the board, of one quota, of a namespace's quotas, and of journals."""

from __future__ import annotations

from django.urls import path

from portal.pages.quotas.board import QuotaBoardView
from portal.pages.quotas.history import QuotaHistoryView
from portal.pages.quotas.journal import QuotaJournalPage
from portal.pages.quotas.quota import QuotaView, WhatIfView
from portal.pages.quotas.raise_many import RaiseManyView

urlpatterns = [
    path("quotas/", QuotaBoardView.as_view(), name="quota-board"),
    path("quotas/-/raise/", RaiseManyView.as_view(), name="quota-raise"),
    path("quotas/<str:cluster>/<str:namespace>/", QuotaHistoryView.as_view(), name="quota-story"),
    path("quotas/<str:cluster>/<str:namespace>/<str:quota>/", QuotaView.as_view(), name="quota"),
    path(
        "quotas/<str:cluster>/<str:namespace>/<str:quota>/what-if/",
        WhatIfView.as_view(),
        name="quota-what-if",
    ),
    path(
        "quotas/<str:cluster>/<str:namespace>/<str:quota>/journal/",
        QuotaJournalPage.as_view(),
        name="quota-journal",
    ),
]
