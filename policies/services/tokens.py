"""``issue_token``, ``revoke_token``, ``tokens_of``, ``tokens_in_care``: tokens of all accounts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from policies import roles
from policies.models import ApiToken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

MOST_TOKENS: Final[int] = settings.REST_KNOX["TOKEN_LIMIT_PER_USER"]
"""Valid tokens that one account may have."""
MOST_DAYS: Final = 366
DEFAULT_DAYS: Final = 30
_CHECKED: Final = ("name", "access", "cluster", "namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """What a new token is for: its name, what it allows, in which scope, for how long."""

    name: str
    access: str = ApiToken.Access.READ
    cluster: str = ""
    namespace: str = ""
    days: int = DEFAULT_DAYS


@transaction.atomic
def issue_token(*, owner: Any, author: Any, request: TokenRequest) -> tuple[ApiToken, str]:
    """Issue a token, and return it with its secret, which is stored nowhere.

    Raises ``ValidationError``; ``PermissionDenied`` for more than the author's own token allows.
    """
    _check(request)
    if owner.pk == author.pk:
        _require_within_own_token(author, request)
    elif owner.is_superuser and not author.is_superuser:
        # Roles of the fleet keep service accounts; no role makes a superuser.
        raise PermissionDenied(f"Only superusers make tokens for {owner.get_username()}.")
    # One at a time for each account: two that count at once would both find room.
    get_user_model().objects.select_for_update().get(pk=owner.pk)
    if valid_tokens(owner).count() >= MOST_TOKENS:
        message = f"There are already {MOST_TOKENS} tokens. Revoke one first."
        raise ValidationError(message, code="too_many_tokens")
    token, secret = ApiToken.objects.create(
        user=owner,
        expiry=timedelta(days=request.days),
        created_by=author.get_username(),
        **{name: getattr(request, name) for name in _CHECKED},
    )
    return token, secret


def _check(request: TokenRequest) -> None:
    asked = ApiToken(**{name: getattr(request, name) for name in _CHECKED})
    others = {field.name for field in ApiToken._meta.fields} - {*_CHECKED}  # noqa: SLF001  Django's public name
    asked.clean_fields(exclude=others)
    if not 1 <= request.days <= MOST_DAYS:
        message = f"must be from 1 to {MOST_DAYS}"
        raise ValidationError({"days": ValidationError(message, code="invalid_days")})


def _require_within_own_token(author: Any, request: TokenRequest) -> None:
    """A token makes no token that is worth more, or longer valid, than itself."""
    own = roles.token_of(author)
    if own is None:
        return
    if not roles.reaches(author, (request.cluster, request.namespace)):
        raise PermissionDenied(f"This token makes tokens for {own.scope} only.")
    if own.expiry is not None and own.expiry < timezone.now() + timedelta(days=request.days):
        raise PermissionDenied("This token makes no token that is valid longer than itself.")


def valid_tokens(owner: Any) -> Any:
    """The tokens of an account that have not expired, the newest first."""
    return ApiToken.objects.filter(Q(expiry=None) | Q(expiry__gt=timezone.now()), user=owner)


def tokens_of(owner: Any, *, reader: Any) -> Sequence[ApiToken]:
    """The valid tokens of an account, as far as the reader's own token reaches."""
    tokens = valid_tokens(owner)
    return [each for each in tokens if roles.reaches(reader, (each.cluster, each.namespace))]


def tokens_in_care(*, keeper: Any) -> QuerySet[ApiToken]:
    """The tokens that a keeper of accounts looks after, with their owners; expired ones, too.

    Those of superusers are for superusers alone: nobody takes their access who cannot give it.
    """
    tokens: QuerySet[ApiToken] = ApiToken.objects.select_related("user__service_account")
    if not roles.may(keeper, roles.KEEP_ACCOUNTS):
        return tokens.none()
    return tokens if keeper.is_superuser else tokens.exclude(user__is_superuser=True)


def revoke_token(*, token: ApiToken) -> None:
    """Delete a token: requests with it are refused from now on."""
    token.delete()
