"""SaveView and DropView: a SavedView of the explorer kept by owner and name, shared, or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.generic import View

from admission.models import SavedView
from admission.models.saved_view import LONGEST_QUERY
from admission.record.search.saved_views import (
    LONGEST_NAME,
    keep_view,
    known_query,
    plain_name,
    view_named,
)
from portal.pages.decisions.explorer import RecordMixin

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase


class SaveView(RecordMixin, View):
    """Save a query under a name, or replace the one of that name."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Save it, and go back to the list as it was."""
        view_name = plain_name(request.POST.get("name", ""))[:LONGEST_NAME]
        query = known_query(request.POST.get("query", ""))
        if not view_name:
            messages.error(request, "Give the view a name.")
        elif len(query) > LONGEST_QUERY:
            messages.error(request, "The query is too long to keep.")
        else:
            view = view_named(request.user, view_name)
            view.query, view.is_shared = query, bool(request.POST.get("shared"))
            try:
                keep_view(view)
            except ValidationError as error:
                messages.error(request, " ".join(error.messages))
            else:
                messages.success(request, f"Saved as “{view_name}”.")
        return _to_explorer(query)


class DropView(RecordMixin, View):
    """Delete a view of one's own; 404 for those of others."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Drop it, and go back to the list as it was."""
        own_view = get_object_or_404(SavedView, pk=pk, owner=request.user)
        own_view.delete()
        messages.success(request, f"Deleted “{own_view.name}”.")
        return _to_explorer(known_query(request.POST.get("query", "")))


def _to_explorer(view_query: str) -> HttpResponseBase:
    return redirect(reverse("decision-list") + (f"?{view_query}" if view_query else ""))
