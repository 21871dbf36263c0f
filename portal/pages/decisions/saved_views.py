"""SaveView and DropView: a SavedView of the explorer kept by owner and name, shared, or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.db import transaction
from django.http import QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.generic import View

from admission.models import AuditEvent, SavedView
from admission.models.saved_view import LONGEST_QUERY
from admission.record.filters import AuditEventFilter
from admission.record.search.facets import with_fields
from portal.pages.decisions.explorer import RecordMixin

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponseBase

MOST_VIEWS: Final = 40
"""Saved views of one person."""
LONGEST_NAME: Final = 60


class SaveView(RecordMixin, View):
    """Save a query under a name, or replace the one of that name."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Save it, and go back to the list as it was."""
        view_name = " ".join(request.POST.get("name", "").replace("\0", "").split())[:LONGEST_NAME]
        query = known_query(request.POST.get("query", ""))
        owner: User = request.user  # type: ignore[assignment]  # nobody else comes in
        if not view_name:
            messages.error(request, "Give the view a name.")
        elif len(query) > LONGEST_QUERY:
            messages.error(request, "The query is too long to keep.")
        elif _keep_view(owner, view_name, query=query, is_shared=bool(request.POST.get("shared"))):
            messages.success(request, f"Saved as “{view_name}”.")
        else:
            messages.error(request, f"You have {MOST_VIEWS} views already: delete one first.")
        return _to_explorer(query)


@transaction.atomic
def _keep_view(owner: User, view_name: str, **view_fields: Any) -> bool:
    """Save the view and return True, or False if the person has too many."""
    # One save at a time for each person: two at once would both find the last free place.
    get_user_model().objects.select_for_update().get(pk=owner.pk)
    if SavedView.objects.filter(owner=owner).exclude(name=view_name).count() >= MOST_VIEWS:
        return False
    SavedView.objects.update_or_create(owner=owner, name=view_name, defaults=view_fields)
    return True


class DropView(RecordMixin, View):
    """Delete a view of one's own; 404 for those of others."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Drop it, and go back to the list as it was."""
        own_view = get_object_or_404(SavedView, pk=pk, owner=request.user)
        own_view.delete()
        messages.success(request, f"Deleted “{own_view.name}”.")
        return _to_explorer(known_query(request.POST.get("query", "")))


def known_query(text: str) -> str:
    """A query string with the fields of the filter, and nothing else."""
    # Lone surrogates, which browsers can send, have no UTF-8 form.
    given_fields = QueryDict(text.encode("utf-8", "ignore"))
    known = AuditEventFilter({}, queryset=AuditEvent.objects.none()).filters
    return with_fields({field: given_fields.get(field, "").replace("\0", "") for field in known})


def _to_explorer(view_query: str) -> HttpResponseBase:
    return redirect(reverse("decision-list") + (f"?{view_query}" if view_query else ""))
