"""InviteForm: a new person's account, and its first roles, in one form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction

from policies import roles
from policies.models import RoleBinding
from portal.auth.invitations import invite
from portal.pages.access.role_form import RoleForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.contrib.auth.models import User

ROLES_AT_ONCE: Final = 3
_PLAIN: Final = {"autocomplete": "off", "spellcheck": "false"}


class FirstRoleForm(RoleForm):
    """A role that the account begins with, or none."""

    role = forms.ChoiceField(choices=[("", "none"), *RoleBinding.Role.choices], required=False)

    def clean(self) -> dict[str, Any]:
        """A scope without a role says nothing."""
        cleaned = super().clean() or {}
        has_scope = cleaned.get("cluster") or cleaned.get("namespace")
        if has_scope and not cleaned.get("role") and "role" not in self.errors:
            self.add_error("role", "Choose a role for this scope, or empty the scope.")
        return cleaned


_FirstRoles: Final = forms.formset_factory(
    FirstRoleForm, extra=ROLES_AT_ONCE, max_num=ROLES_AT_ONCE, absolute_max=ROLES_AT_ONCE
)


class InviteForm(forms.Form):
    """Name and e-mail address; ``first_roles`` are the rows of roles below them."""

    username = forms.CharField(
        max_length=150,
        help_text="For signing in. The record names it, so it is never reused.",
        widget=forms.TextInput(attrs=_PLAIN),
    )
    email = forms.EmailField(label="E-mail", widget=forms.EmailInput(attrs=_PLAIN))

    def __init__(self, sent: Mapping[str, Any] | None = None) -> None:
        super().__init__(sent)
        first = [{"role": "viewer"}] if sent is None else None
        self.first_roles = _FirstRoles(sent, initial=first, prefix="role")

    def is_valid(self) -> bool:
        """Whether the account and all its roles can be read."""
        # Both are asked, so that all errors are shown at once.
        has_valid_roles = self.first_roles.is_valid()
        return super().is_valid() and has_valid_roles

    def store(self, *, author: Any) -> User | None:
        """Create the account with its roles, all or nothing; a refusal becomes an error."""
        names = {name: self.cleaned_data[name] for name in ("username", "email")}
        for form in self._chosen():
            _require_right(form, author)
        try:
            with transaction.atomic():
                user = invite(**names, author=author)
                if all(form.bind(author=author, user=user) for form in self._chosen()):
                    return user
                transaction.set_rollback(True)
        except ValidationError as error:
            for name, texts in error.message_dict.items():
                self.add_error(name if name in self.fields else None, texts)
        return None

    def _chosen(self) -> Iterator[FirstRoleForm]:
        return (form for form in self.first_roles if form.cleaned_data.get("role"))


def _require_right(form: FirstRoleForm, author: Any) -> None:
    """Nobody gives more than they have, not even to a new account."""
    scope = form.cleaned_data
    at = roles.place_of_binding(scope["cluster"], scope["namespace"])
    if not roles.may(author, roles.GIVE_ROLES, cluster=at.cluster, namespace=at.namespace):
        raise PermissionDenied
