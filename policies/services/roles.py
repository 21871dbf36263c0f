"""``bind_role``, ``unbind_role``, ``delete_group``: RoleBinding written with its RoleChange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import transaction

from policies.models import RoleBinding, RoleChange

if TYPE_CHECKING:
    from django.contrib.auth.models import Group
    from django.db.models import QuerySet


@transaction.atomic
def bind_role(*, binding: RoleBinding, author: Any) -> RoleBinding:
    """Store a binding; raises ``ValidationError`` for an invalid or existing one."""
    binding.created_by = author.get_username()
    _require_new(binding)
    binding.full_clean()
    binding.save()
    _record_change(binding, author, RoleChange.Action.GIVEN)
    return binding


def _require_new(binding: RoleBinding) -> None:
    names = ("user", "group", "role", "cluster", "namespace")
    if RoleBinding.objects.filter(**{name: getattr(binding, name) for name in names}).exists():
        there = ValidationError(f"{binding.subject} already has this role there.", code="unique")
        raise ValidationError({NON_FIELD_ERRORS: there})


@transaction.atomic
def unbind_role(*, binding: RoleBinding, author: Any) -> None:
    """Revoke a role, effective with the person's next request."""
    _record_change(binding, author, RoleChange.Action.TAKEN)
    binding.delete()


@transaction.atomic
def delete_group(*, group: Group, author: Any) -> None:
    """Delete a group and revoke its roles."""
    for binding in RoleBinding.objects.filter(group=group):
        unbind_role(binding=binding, author=author)
    group.delete()


def _record_change(binding: RoleBinding, author: Any, action: RoleChange.Action) -> None:
    RoleChange.objects.create(
        action=action,
        subject=binding.subject,
        role=binding.role,
        cluster=binding.cluster,
        namespace=binding.namespace,
        actor=author.get_username(),
    )


def role_history() -> QuerySet[RoleChange]:
    """The roles granted and revoked, the newest first."""
    return RoleChange.objects.all()
