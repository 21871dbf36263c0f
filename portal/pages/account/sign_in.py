"""SignInView, the page of signing in."""

from __future__ import annotations

from django.contrib.auth.views import LoginView


class SignInView(LoginView):
    """The form of name and password; whoever is signed in goes to the home page."""

    template_name = "account/sign_in.html"
    next_page = "home"
    redirect_authenticated_user = True
