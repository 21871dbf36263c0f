"""TokenForm of pages that create API tokens: ``issued_by_form``, and what their tables show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.http import Http404

from policies import services
from policies.models import ApiToken

if TYPE_CHECKING:
    from django.http import QueryDict

TOKEN_DAYS: Final = (30, 1, 7, 90, 365)
_ACCESS_WORDS: Final = (
    (ApiToken.Access.READ.value, "Read: lists, exports, simulations"),
    (ApiToken.Access.WRITE.value, "Write: whatever the account's roles allow"),
)


class TokenForm(forms.Form):
    """The form of a new token: what it is for, what it allows, where, how long."""

    token_name = forms.CharField(
        max_length=100,
        label="Name",
        help_text="What uses it, so that you know later what you revoke.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    access = forms.ChoiceField(choices=_ACCESS_WORDS)
    cluster = forms.CharField(
        required=False, max_length=253, help_text="Empty: every cluster that the roles cover."
    )
    namespace = forms.CharField(
        required=False,
        max_length=63,
        help_text="Empty: every namespace. A prefix and * matches all names that begin with it.",
    )
    days = forms.TypedChoiceField(
        coerce=int,
        label="Valid for",
        choices=[(days, f"{days} day{'' if days == 1 else 's'}") for days in TOKEN_DAYS],
    )

    def request(self) -> services.TokenRequest:
        """What the form asks for."""
        asked = dict(self.cleaned_data)
        return services.TokenRequest(name=asked.pop("token_name"), **asked)


def issued_by_form(sent: QueryDict, *, owner: Any, author: Any) -> tuple[TokenForm, str]:
    """The form that was sent, and the secret of the token; empty where the form has errors."""
    token_form = TokenForm(sent)
    if not token_form.is_valid():
        return token_form, ""
    try:
        _, secret = services.issue_token(owner=owner, author=author, request=token_form.request())
    except ValidationError as error:
        for name, texts in _texts_by_field(error).items():
            token_form.add_error(name if name in token_form.fields else None, texts)
        return token_form, ""
    return token_form, secret


def _texts_by_field(error: ValidationError) -> dict[str, list[str]]:
    if not hasattr(error, "error_dict"):
        return {"": error.messages}
    return {("token_name" if n == "name" else n): t for n, t in error.message_dict.items()}


def revoke_sent(sent: QueryDict, *, owner: Any) -> ApiToken:
    """Revoke the token that a row's button names; raises ``Http404`` for tokens of others."""
    for token in services.tokens_of(owner, reader=owner):
        if str(token.public_id) == sent["revoke"]:
            services.revoke_token(token=token)
            return token
    raise Http404
