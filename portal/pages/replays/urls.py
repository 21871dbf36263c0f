"""URL patterns of replays."""

from __future__ import annotations

from django.urls import path

from portal.pages.replays.list import NewReplayView, ReplayListView
from portal.pages.replays.page import ReplayPage, ReplayProgressPage

urlpatterns = [
    path("replays/", ReplayListView.as_view(), name="replays"),
    path("replays/new/", NewReplayView.as_view(), name="replay-new"),
    path("replays/<uuid:uid>/", ReplayPage.as_view(), name="replay"),
    path("replays/<uuid:uid>/progress", ReplayProgressPage.as_view(), name="replay-progress"),
]
