"""InvitationView: whoever was invited sets the first password, and is signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.views import PasswordResetConfirmView
from django.urls import reverse_lazy

from policies.models import SignIn
from portal.auth.invitations import awaits_password
from portal.auth.sign_in import come_by

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpResponse

GONE = 410


class InvitationView(PasswordResetConfirmView):
    """Django's page of a one-time link, for accounts that have no password yet.

    It moves the token into the session at once, so that no later address has it.
    """

    template_name = "account/invitation.html"
    success_url = reverse_lazy("home")
    post_reset_login = True
    post_reset_login_backend = "django.contrib.auth.backends.ModelBackend"

    def get_user(self, uidb64: str) -> User | None:
        """The invited account; None for one that has a password, or has ended."""
        user = super().get_user(uidb64)
        return user if user is not None and awaits_password(user) else None

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the password, and sign in by the link."""
        come_by(self.request, SignIn.Way.INVITATION)
        return super().form_valid(form)

    def render_to_response(self, context: dict[str, Any], **response_kwargs: Any) -> HttpResponse:
        """Answer 410 where the link leads nowhere any more."""
        status = {} if self.validlink else {"status": GONE}
        return super().render_to_response(context, **status, **response_kwargs)
