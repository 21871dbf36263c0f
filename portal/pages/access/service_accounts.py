"""Pages of ServiceAccounts: the list with the form for a new one; one with its tokens and roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, Max
from django.shortcuts import get_object_or_404, redirect

from policies import roles, services
from policies.services.service_accounts import LONGEST_NAME
from portal.pages.access.keepers import KeepersPage
from portal.pages.access.role_form import role_words
from portal.pages.access.token_form import TokenForm, issued_by_form, revoke_sent
from portal.pages.lists import ListColumns, listed

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from policies.models import ServiceAccount


_COLUMNS: Final = ListColumns(
    headings=(
        ("name", "Name", ""),
        ("", "For", ""),
        ("roles", "Roles", "figure"),
        ("tokens", "Tokens", "figure"),
        ("used", "Last used", ""),
        ("created", "Created", ""),
    ),
    orders={
        "name": ("user__username",),
        "roles": ("role_number", "user__username"),
        "tokens": ("token_number", "user__username"),
        "used": ("last_used", "user__username"),
        "created": ("created", "user__username"),
    },
    usual="name",
    searched=("user__username", "description"),
)


class ServiceAccountForm(forms.Form):
    """The form of a new account."""

    name = forms.CharField(
        max_length=LONGEST_NAME,
        help_text="Lower-case letters, digits and -. The record names it, so it is never reused.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    description = forms.CharField(
        required=False, max_length=200, help_text="What uses it, and whom to ask."
    )


class ServiceAccountListView(KeepersPage):
    """All service accounts; with ``new``, the form for another one in their place."""

    template_name = "access/service_accounts.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of accounts with the numbers of their roles and tokens; two queries."""
        accounts = services.service_accounts().annotate(
            role_number=Count("user__role_bindings", distinct=True),
            token_number=Count("user__auth_token_set", distinct=True),
            last_used=Max("user__auth_token_set__last_used"),
        )
        is_new = "form" in kwargs or "new" in self.request.GET
        form_context = {"form": ServiceAccountForm(), **kwargs, "is_new": is_new}
        return super().get_context_data(**form_context, **listed(accounts, self.request, _COLUMNS))

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create an account, and go to its page."""
        account_form = ServiceAccountForm(request.POST)
        if account_form.is_valid():
            try:
                account = services.create_service_account(
                    **account_form.cleaned_data, author=request.user
                )
            except ValidationError as error:
                account_form.add_error(None, error)
            else:
                messages.success(request, f"Created: {account}. Give it a role and a token next.")
                return redirect("service-account", account.name)
        return self.render_to_response(self.get_context_data(form=account_form), status=422)


class ServiceAccountPageView(KeepersPage):
    """One account: its roles, its tokens, and its end; a new token is shown once."""

    template_name = "access/service_account.html"
    account: ServiceAccount

    def find(self, names: dict[str, Any]) -> None:
        """Find the account; 404 for one that has ended."""
        super().find(names)
        found = services.service_accounts()
        self.account = get_object_or_404(found, user__username=names["name"])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Its roles with their words, and its valid tokens."""
        return super().get_context_data(
            **{"token_form": TokenForm(), **kwargs},
            account=self.account,
            bindings=role_words(roles.bindings_of(self.account.user)),
            tokens=services.tokens_of(self.account.user, reader=self.request.user),
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Create a token, revoke one, or end the account."""
        if "revoke" in request.POST:
            revoked = revoke_sent(request.POST, owner=self.account.user)
            messages.success(request, f"Revoked: {revoked.name}. Requests with it are refused.")
            return redirect("service-account", self.account.name)
        if "end" in request.POST:
            services.end_service_account(account=self.account, author=request.user)
            messages.success(request, f"Ended: {self.account}, with its roles and tokens.")
            return redirect("service-accounts")
        token_form, secret = issued_by_form(
            request.POST, owner=self.account.user, author=request.user
        )
        context = {"secret": secret} if secret else {"token_form": token_form}
        return self.render_to_response(
            self.get_context_data(**context), status=200 if secret else 422
        )
