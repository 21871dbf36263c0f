"""Forms that save, share and drop views of the explorer."""

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

MOST: Final = 40
"""Saved views of one person."""
LONGEST: Final = 60


class SaveView(RecordMixin, View):
    """Save a query under a name, or replace the one of that name."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Save it, and go back to the list as it was."""
        name = " ".join(request.POST.get("name", "").replace("\0", "").split())[:LONGEST]
        query = known_query(request.POST.get("query", ""))
        owner: User = request.user  # type: ignore[assignment]  # nobody else comes in
        if not name:
            messages.error(request, "Give the view a name.")
        elif len(query) > LONGEST_QUERY:
            messages.error(request, "The query is too long to keep.")
        elif _keep(owner, name, query=query, is_shared=bool(request.POST.get("shared"))):
            messages.success(request, f"Saved as “{name}”.")
        else:
            messages.error(request, f"You have {MOST} views already: delete one first.")
        return _to_list(query)


@transaction.atomic
def _keep(owner: User, name: str, **fields: Any) -> bool:
    """Save the view and return True, or False if the person has too many."""
    # One save at a time for each person: two at once would both find the last free place.
    get_user_model().objects.select_for_update().get(pk=owner.pk)
    if SavedView.objects.filter(owner=owner).exclude(name=name).count() >= MOST:
        return False
    SavedView.objects.update_or_create(owner=owner, name=name, defaults=fields)
    return True


class DropView(RecordMixin, View):
    """Delete a view of one's own; 404 for those of others."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Drop it, and go back to the list as it was."""
        view = get_object_or_404(SavedView, pk=pk, owner=request.user)
        view.delete()
        messages.success(request, f"Deleted “{view.name}”.")
        return _to_list(known_query(request.POST.get("query", "")))


def known_query(text: str) -> str:
    """A query string with the fields of the filter, and nothing else."""
    # Lone surrogates, which browsers can send, have no UTF-8 form.
    given = QueryDict(text.encode("utf-8", "ignore"))
    known = AuditEventFilter({}, queryset=AuditEvent.objects.none()).filters
    return with_fields({name: given.get(name, "").replace("\0", "") for name in known})


def _to_list(query: str) -> HttpResponseBase:
    return redirect(reverse("decision-list") + (f"?{query}" if query else ""))
