"""Shared parts of the record's pages: permission and visible decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.mixins import LoginRequiredMixin
from django.utils.cache import add_never_cache_headers

from admission.models import AuditEvent, AuditEventQuerySet, SavedView
from admission.record.search.query import sees_places
from admission.record.search.search import Search
from policies import roles

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase


class RecordMixin(LoginRequiredMixin):
    """Only for people who are logged in, and never kept by a cache."""

    request: HttpRequest

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Mark the answer as not to be stored."""
        response = super().dispatch(request, *args, **kwargs)
        add_never_cache_headers(response)
        return response

    def visible(self) -> AuditEventQuerySet:
        """The decisions that the person may see."""
        user = self.request.user
        rows = AuditEvent.objects.all()
        return roles.visible(rows, user, cluster="cluster", namespace="namespace")

    @property
    def has_role(self) -> bool:
        """Whether there is anything at all that the person may see."""
        user = self.request.user
        return roles.sees_all(user) or bool(roles.bindings_of(user))

    @property
    def may_hold(self) -> bool:
        """Whether the person may hold decisions of any place against retention."""
        return roles.may_somewhere(self.request.user, "admission.add_audithold")

    def views(self) -> list[SavedView]:
        """The person's own views, and those that others share and whose places the person sees.

        One that names no place is about all of them: it is for those who see any.
        """
        user = self.request.user
        found = SavedView.objects.usable_by(user).select_related("owner")
        return [
            each
            for each in found
            if each.owner_id == user.pk or (self.has_role and sees_places(user, each.query))
        ]

    def whole_clusters(self, asked: str) -> list[str] | None:
        """The clusters of which the person sees all; None: all there are.

        Raises ``LookupError`` where that is not all that the person sees of what is asked.
        """
        user = self.request.user
        if roles.sees_all(user):
            return None
        if asked and roles.sees(user, asked, ""):
            return [asked]
        bindings = roles.bindings_of(user)
        if asked or any(each.namespace for each in bindings):
            raise LookupError(asked)
        return [each.cluster for each in bindings]

    def search(self) -> Search:
        """What the address asks for, among those."""
        return Search(self.request.GET.dict(), self.visible())
