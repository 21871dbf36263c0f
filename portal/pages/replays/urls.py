"""URL patterns of replays."""

from __future__ import annotations

from django.urls import path

from portal.pages.replays.list import NewReplayView, ReplayListView
from portal.pages.replays.page import ProgressView, ReplayView

urlpatterns = [
    path("replays/", ReplayListView.as_view(), name="replays"),
    path("replays/new/", NewReplayView.as_view(), name="replay-new"),
    path("replays/<uuid:uid>/", ReplayView.as_view(), name="replay"),
    path("replays/<uuid:uid>/progress", ProgressView.as_view(), name="replay-progress"),
]
