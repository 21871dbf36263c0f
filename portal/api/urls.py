"""URL patterns of the REST views that need both admission and sync."""

from __future__ import annotations

from django.urls import path

from portal.api.authority_effect import AuthorityEffectView

urlpatterns = [
    path(
        "clusters/<str:cluster>/authority/effect/",
        AuthorityEffectView.as_view({"get": "retrieve"}),
        name="api-authority-effect",
    ),
]
