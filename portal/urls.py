"""The map of all addresses."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path, re_path

import portal.auth.admin  # noqa: F401  registers accounts in the back office, behind Django's own
from portal.pages.access.legal_holds import HoldsView
from portal.pages.access.people import PeopleNamesView, PeopleView
from portal.pages.account.page import AccountView, PasswordView
from portal.pages.clusters.switch import SwitchingView
from portal.pages.decisions.why import WhyView
from portal.pages.home.page import HomeView
from portal.pages.namespaces.list import NamespaceListView
from portal.pages.namespaces.page import NamespacePageView
from portal.pages.policies.restart_impact import NewRestartsView, RestartsView
from portal.pages.quotas.board import QuotaBoardView
from portal.pages.quotas.history import QuotaStoryView
from portal.pages.search.palette import FindView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("policies.api.urls")),
    path("", include("admission.api.urls")),
    path("", HomeView.as_view(), name="home"),
    path("people/", PeopleView.as_view(), name="people"),
    path("people/names/", PeopleNamesView.as_view(), name="people-names"),
    path("account/", AccountView.as_view(), name="account"),
    path("account/password/", PasswordView.as_view(), name="account-password"),
    path("decisions/holds/", HoldsView.as_view(), name="holds"),
    path("find/", FindView.as_view(), name="find"),
    re_path(r"^decisions/(?P<pk>[0-9a-z]{16})$", WhyView.as_view(), name="decision-detail"),
    path("clusters/<str:cluster>/authority/", SwitchingView.as_view(), name="cluster-authority"),
    path("clusters/<str:cluster>/namespaces/", NamespaceListView.as_view(), name="namespace-list"),
    path(
        "clusters/<str:cluster>/namespaces/<str:namespace>/",
        NamespacePageView.as_view(),
        name="namespace",
    ),
    path(
        "clusters/<str:cluster>/namespaces/<str:namespace>/<str:plural>/new/restarts",
        NewRestartsView.as_view(),
        name="policy-new-restarts",
    ),
    path(
        "clusters/<str:cluster>/namespaces/<str:namespace>/<str:plural>/<str:name>/restarts/",
        RestartsView.as_view(),
        name="policy-restarts",
    ),
    path("clusters/", include("portal.pages.urls")),
    path("quotas/", QuotaBoardView.as_view(), name="quota-board"),
    path("quotas/<str:cluster>/<str:namespace>/", QuotaStoryView.as_view(), name="quota-story"),
    path("", include("portal.pages.decisions.urls")),
]
handler404 = "portal.pages.clusters.switch.nothing_here"
