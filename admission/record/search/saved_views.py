"""Saved views: ``usable_views``, ``may_change``, ``keep_view``, ``known_query`` of the explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import QueryDict

from admission.models import AuditEvent, SavedView
from admission.record.filters import AuditEventFilter
from admission.record.search.facets import with_fields
from admission.record.search.query import sees_places
from policies import roles

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_VIEWS: Final = 40
"""Saved views of one person."""
LONGEST_NAME: Final = 60
CHANGE_SHARED_VIEWS: Final = "admission.change_savedview"
"""The permission to change shared views of others; only admins have it."""
LOOKS: Final = ("columns", "sort", "group")
"""Fields of the explorer's address that say how the decisions are shown."""


def usable_views(user: Any) -> list[SavedView]:
    """The person's own views, and shared views of places that the person sees.

    A shared view that names no place is shown to everybody with a role. A token for a part of the
    fleet shows only views that stay there.
    """
    has_role = roles.sees_all(user) or bool(roles.bindings_of(user))
    is_scoped = roles.is_scoped(user)
    views = SavedView.objects.usable_by(user).select_related("owner")
    return [
        view
        for view in views
        if (view.owner_id == user.pk and not is_scoped)
        or (has_role and sees_places(user, view.query))
    ]


def may_change(user: Any, view: SavedView) -> bool:
    """Whether a person may change or delete a view: its owner, or an admin if it is shared."""
    return bool(
        view.owner_id == user.pk or (view.is_shared and roles.may(user, CHANGE_SHARED_VIEWS))
    )


@transaction.atomic
def keep_view(view: SavedView) -> SavedView:
    """Store a view of one person; raises ``ValidationError``, also for one too many."""
    # One save at a time for each person: two at once would both find the last free place.
    get_user_model().objects.select_for_update().get(pk=view.owner_id)
    others = SavedView.objects.filter(owner=view.owner).exclude(pk=view.pk)
    if others.count() >= MOST_VIEWS:
        message = f"You have {MOST_VIEWS} views already: delete one first."
        raise ValidationError(message, code="too_many_views")
    view.full_clean()
    view.save()
    return view


def view_named(owner: Any, name: str) -> SavedView:
    """The person's view of this name, or a new one."""
    found: SavedView | None = SavedView.objects.filter(owner=owner, name=name).first()
    return found or SavedView(owner=owner, name=name)


def plain_name(text: str) -> str:
    """A name without line breaks and blanks in a row."""
    return " ".join(text.replace("\0", "").split())


def known_query(text: str) -> str:
    """A query string with the fields of the filter and the look, and nothing else."""
    fields = fields_of_query(text)
    return with_fields({name: fields.get(name, "").replace("\0", "") for name in address_fields()})


def fields_of_query(text: str) -> dict[str, str]:
    """The fields of a query string, known or not."""
    # Lone surrogates, which browsers can send, have no UTF-8 form.
    return {name: str(value) for name, value in QueryDict(text.encode("utf-8", "ignore")).items()}


def query_fields() -> Iterable[str]:
    """The fields of the filter."""
    return list(AuditEventFilter({}, queryset=AuditEvent.objects.none()).filters)


def address_fields() -> Iterable[str]:
    """The fields of the filter, and those of the look."""
    return [*query_fields(), *LOOKS]
