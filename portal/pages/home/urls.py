"""URL pattern of Home."""

from __future__ import annotations

from django.urls import path

from portal.pages.home.page import HomeView

urlpatterns = [
    path("", HomeView.as_view(), name="home"),
]
