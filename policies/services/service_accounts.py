"""Service accounts: created without a password, described, and ended; their names stay taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import transaction

from policies.models import ApiToken, RoleBinding, ServiceAccount
from policies.services.roles import unbind_role

if TYPE_CHECKING:
    from django.db.models import QuerySet

LONGEST_NAME: Final = 63
_NAMES: Final = RegexValidator(
    r"\A[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
    "lower-case letters, digits and -, which begin and end with a letter or digit",
)


def service_accounts() -> QuerySet[ServiceAccount]:
    """The service accounts that have not ended, by name."""
    return ServiceAccount.objects.filter(user__is_active=True).select_related("user")


@transaction.atomic
def create_service_account(*, name: str, description: str, author: Any) -> ServiceAccount:
    """Create an account that signs in nowhere; raises ``ValidationError``."""
    _require_new_name(name)
    user = get_user_model().objects.create_user(username=name)  # without a password: unusable
    account = ServiceAccount(user=user, description=description, created_by=author.get_username())
    account.full_clean()
    account.save()
    return account


def _require_new_name(name: str) -> None:
    try:
        _NAMES(name)
    except ValidationError as error:
        raise ValidationError({"name": error}) from error
    if len(name) > LONGEST_NAME:
        too_long = ValidationError(f"at most {LONGEST_NAME} characters", code="max_length")
        raise ValidationError({"name": too_long})
    # The record names accounts, so a name never changes hands; nor may one look like another.
    if get_user_model().objects.filter(username__iexact=name).exists():
        taken = ValidationError("an account has, or once had, this name", code="unique")
        raise ValidationError({"name": taken})


@transaction.atomic
def describe_service_account(*, account: ServiceAccount, description: str) -> ServiceAccount:
    """Change what is said about an account; raises ``ValidationError``."""
    account.description = description
    account.full_clean()
    account.save(update_fields=["description"])
    return account


@transaction.atomic
def end_service_account(*, account: ServiceAccount, author: Any) -> None:
    """End an account for good: without tokens, roles, and not active.

    Its row stays, since the record names it.
    """
    ApiToken.objects.filter(user=account.user).delete()
    for binding in RoleBinding.objects.filter(user=account.user):
        unbind_role(binding=binding, author=author)
    account.user.is_active = False
    account.user.save(update_fields=["is_active"])
