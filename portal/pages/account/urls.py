"""URL patterns of one's own account, sign-in and sign-out."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from portal.pages.account.page import AccountView, PasswordView

urlpatterns = [
    path("account/", AccountView.as_view(), name="account"),
    path("account/password/", PasswordView.as_view(), name="account-password"),
    path(
        "accounts/login/",
        LoginView.as_view(
            template_name="account/sign_in.html",
            next_page="home",
            redirect_authenticated_user=True,
        ),
        name="login",
    ),
    path("accounts/logout/", LogoutView.as_view(next_page="login"), name="logout"),
]
