"""Giving roles and taking them back; both stay on the list of what people did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.db import transaction

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from policies.models import RoleBinding


@transaction.atomic
def bind_role(*, binding: RoleBinding, author: Any) -> RoleBinding:
    """Store a binding; raises ``ValidationError`` for one that is wrong or there already."""
    binding.created_by = author.get_username()
    binding.full_clean()
    binding.save()
    _note(binding, author, ADDITION, "given")
    return binding


@transaction.atomic
def unbind_role(*, binding: RoleBinding, author: Any) -> None:
    """Take a role back; the person's next request knows."""
    _note(binding, author, DELETION, "taken back")
    binding.delete()


def _note(binding: RoleBinding, author: Any, flag: int, words: str) -> None:
    LogEntry.objects.log_actions(
        author.pk, [binding], flag, change_message=f"{words}: {binding}"[:1000], single_object=True
    )


def role_history() -> QuerySet[LogEntry]:
    """What was given and taken back, the newest first."""
    found = LogEntry.objects.filter(
        content_type__app_label="policies", content_type__model="rolebinding"
    )
    return found.select_related("user").order_by("-action_time", "-pk")
