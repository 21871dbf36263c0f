"""SignInView, the page of signing in."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.views import LoginView

from gatehouse_cli import __version__


class SignInView(LoginView):
    """The form of name and password; whoever is signed in goes to the home page."""

    template_name = "account/sign_in.html"
    next_page = "home"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The form, and what stands at the foot of the page."""
        docs = settings.GATEHOUSE_DOCS_URL
        return super().get_context_data(**kwargs, docs=docs, version=__version__)
