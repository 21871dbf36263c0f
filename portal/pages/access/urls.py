"""URL patterns of people, their roles and tokens, and of legal holds."""

from __future__ import annotations

from django.urls import path

from portal.pages.access.legal_holds import HoldsView
from portal.pages.access.people import PeopleView, RolesView
from portal.pages.access.role_form import PeopleNamesView
from portal.pages.access.service_accounts import ServiceAccountListView, ServiceAccountPageView
from portal.pages.access.sign_ins import SignInListView
from portal.pages.access.token_list import TokenListView

urlpatterns = [
    path("people/", PeopleView.as_view(), name="people"),
    path("people/roles/", RolesView.as_view(), name="people-roles"),
    path("people/names/", PeopleNamesView.as_view(), name="people-names"),
    path("people/tokens/", TokenListView.as_view(), name="people-tokens"),
    path("people/sign-ins/", SignInListView.as_view(), name="people-sign-ins"),
    path("people/service-accounts/", ServiceAccountListView.as_view(), name="service-accounts"),
    path(
        "people/service-accounts/<str:name>/",
        ServiceAccountPageView.as_view(),
        name="service-account",
    ),
    path("decisions/holds/", HoldsView.as_view(), name="holds"),
]
