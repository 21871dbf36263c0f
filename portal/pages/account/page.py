"""AccountView: one's own roles, and API tokens issued and revoked; PasswordView."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.views import PasswordChangeView
from django.shortcuts import redirect
from django.urls import reverse_lazy

from policies import roles, services
from portal.pages.access.role_form import role_words
from portal.pages.access.token_form import TokenForm, issued_by_form, revoke_sent
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


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
            **{"token_form": TokenForm(), **kwargs},
            bindings=role_words(roles.bindings_of(user)),
            tokens=services.tokens_of(user, reader=user),
        )

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create a token, or revoke one."""
        if "revoke" in request.POST:
            revoked = revoke_sent(request.POST, owner=request.user)
            messages.success(request, f"Revoked: {revoked.name}. Requests with it are refused.")
            return redirect("account")
        token_form, secret = issued_by_form(request.POST, owner=request.user, author=request.user)
        context = {"secret": secret} if secret else {"token_form": token_form}
        return self.render_to_response(
            self.get_context_data(**context), status=200 if secret else 422
        )


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
