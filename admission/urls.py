"""The addresses of this app's pages; the endpoint's and the API's are in ``api.urls``."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path, re_path

from admission.views import DecisionDetailView, DecisionListView

urlpatterns = [
    path("decisions/", DecisionListView.as_view(), name="decision-list"),
    re_path(
        r"^decisions/(?P<pk>[0-9a-z]{16})$", DecisionDetailView.as_view(), name="decision-detail"
    ),
    path(
        "accounts/login/",
        LoginView.as_view(next_page="home", redirect_authenticated_user=True),
        name="login",
    ),
    path("accounts/logout/", LogoutView.as_view(next_page="login"), name="logout"),
]
