"""SaveView and DropView: a SavedView of the explorer kept by owner and name, shared, or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse
from django.views.generic import View

from admission.models.saved_view import LONGEST_QUERY
from admission.record.search.saved_views import (
    LONGEST_NAME,
    keep_view,
    known_query,
    may_change,
    plain_name,
    usable_views,
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
            messages.error(request, "The query is too long to save: shorten it.")
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
    """Delete a view of one's own, or as an admin a shared one; 404 for others."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Drop it, and go back to the list as it was."""
        usable_view = next((view for view in usable_views(request.user) if view.pk == pk), None)
        if usable_view is None or not may_change(request.user, usable_view):
            raise Http404
        usable_view.delete()
        messages.success(request, f"Deleted “{usable_view.name}”.")
        return _to_explorer(known_query(request.POST.get("query", "")))


def _to_explorer(view_query: str) -> HttpResponseBase:
    return redirect(reverse("decision-list") + (f"?{view_query}" if view_query else ""))
