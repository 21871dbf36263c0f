"""AccountView: one's own roles, API tokens (AuthToken) made for days and revoked; PasswordView."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.views import PasswordChangeView
from django.db import transaction
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse_lazy
from knox.models import AuthToken

from policies import roles
from portal.pages.access.people import ROLE_WORDS
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

TOKEN_DAYS: Final = (1, 7, 30, 90)
MOST: Final = settings.REST_KNOX["TOKEN_LIMIT_PER_USER"]
"""Valid tokens that one person may have."""


class AccountView(PortalPage):
    """Roles and tokens; a new token is shown once, in the answer that makes it."""

    template_name = "account/account.html"

    def may(self, permission: str) -> bool:
        """One's own tokens need no permission."""
        return not permission or super().may(permission)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The person's roles and tokens."""
        user = self.request.user
        return super().get_context_data(
            **kwargs,
            bindings=[
                {"binding": binding, "words": ROLE_WORDS[binding.role]}
                for binding in roles.bindings_of(user)
            ],
            tokens=AuthToken.objects.filter(user=user).order_by("-created"),
            days=TOKEN_DAYS,
        )

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create a token, or take one back."""
        if "revoke" in request.POST:
            token_digest = request.POST["revoke"][:128]
            get_object_or_404(AuthToken, user=request.user, digest=token_digest).delete()
            messages.success(request, "Revoked: requests with this token are refused from now on.")
            return redirect("account")
        chosen_days = request.POST.get("days", "")
        days = next((each for each in TOKEN_DAYS if str(each) == chosen_days), TOKEN_DAYS[0])
        with transaction.atomic():
            # One at a time for each person: two that count at once would both find room.
            get_user_model().objects.select_for_update().get(username=request.user.get_username())
            if AuthToken.objects.filter(user=request.user).count() >= MOST:
                messages.error(request, f"There are {MOST} tokens already. Revoke one first.")
                return redirect("account")
            _, secret = AuthToken.objects.create(user=request.user, expiry=timedelta(days=days))
        return self.render_to_response(self.get_context_data(secret=secret))


class PasswordView(PasswordChangeView):
    """The form for a new password, which ends other sessions and all tokens."""

    template_name = "account/password.html"
    success_url = reverse_lazy("account")

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the password, with a message about the ended sessions."""
        changed_answer = super().form_valid(form)
        messages.success(
            self.request, "Changed. Your other sessions and your tokens are no longer valid."
        )
        return changed_answer
