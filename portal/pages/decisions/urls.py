"""The addresses of this app's pages; the endpoint's and the API's are in ``api.urls``.

The page of one decision knows policies, too: it is the portal's.
"""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from portal.pages.decisions.explorer import DecisionListView, NewerDecisionsView
from portal.pages.decisions.export import ExportView
from portal.pages.decisions.saved_views import DropView, SaveView

urlpatterns = [
    path("decisions/", DecisionListView.as_view(), name="decision-list"),
    path("decisions/newer/", NewerDecisionsView.as_view(), name="decision-newer"),
    path("decisions/export.<str:form>", ExportView.as_view(), name="decision-export"),
    path("decisions/views/", SaveView.as_view(), name="decision-view-save"),
    path("decisions/views/<int:pk>/drop/", DropView.as_view(), name="decision-view-drop"),
    path(
        "accounts/login/",
        LoginView.as_view(next_page="home", redirect_authenticated_user=True),
        name="login",
    ),
    path("accounts/logout/", LogoutView.as_view(next_page="login"), name="logout"),
]
