"""URL patterns of one's own account, sign-in and sign-out."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from portal.pages.account.invitation import InvitationView
from portal.pages.account.page import AccountView, PasswordView
from portal.pages.account.sign_in import SignInView

urlpatterns = [
    path("account/", AccountView.as_view(), name="account"),
    path("account/password/", PasswordView.as_view(), name="account-password"),
    path("accounts/invitation/<uidb64>/<token>/", InvitationView.as_view(), name="invitation"),
    path("accounts/login/", SignInView.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(next_page="login"), name="logout"),
]
