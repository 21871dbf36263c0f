"""URL patterns of the demo: its sign-in, which offers people, before all of the portal's own."""

from __future__ import annotations

from django.urls import include, path

from portal.dev.sign_in import DemoSignInView

urlpatterns = [
    path("accounts/login/", DemoSignInView.as_view()),
    path("", include("portal.urls")),
]
handler404 = "portal.urls.not_found"
handler500 = "portal.urls.failed"
