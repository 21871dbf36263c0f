"""``/api/v1/savedviews/``: one's own saved searches of the record, and those shared by others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response

from admission.api.record.record_view import RecordView
from admission.models import SavedView
from admission.record.filters import SavedViewFilter
from admission.record.search.query import sees_places
from admission.record.search.saved_views import (
    LONGEST_NAME,
    address_fields,
    fields_of_query,
    keep_view,
    known_query,
    may_change,
    plain_name,
    usable_views,
)
from policies import preconditions, roles
from policies.openapi import Answered
from policies.rest import known_names

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request


class SavedViewSerializer(Answered, serializers.ModelSerializer[SavedView]):
    """A search of the record under a name."""

    id = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="null only where ?dryRun=All shows a new object"
    )
    owner = serializers.CharField(source="owner.username", read_only=True)
    name = serializers.CharField(max_length=LONGEST_NAME)
    query = serializers.CharField(
        required=False,
        allow_blank=True,
        help_text="as in the explorer's addresses: verdict=denied&namespace=web",
    )
    shared = serializers.BooleanField(
        source="is_shared",
        required=False,
        help_text="with everyone who sees the places that it names",
    )

    class Meta:
        """What a person gives, and the owner."""

        model = SavedView
        fields = ["id", "owner", "name", "query", "shared"]

    def validate_name(self, name: str) -> str:
        """Without blanks in a row, as the page keeps it."""
        return plain_name(name)

    def validate_query(self, text: str) -> str:
        """Refuse fields that the search does not know; the page leaves them out."""
        known = list(address_fields())
        for name in fields_of_query(text):
            if name not in known:
                message = f'unknown field "{name}"; {known_names(name, known)}'
                raise serializers.ValidationError(message, code="unknown_field")
        return known_query(text)


class SavedViewView(RecordView):
    """Saved views: the caller's and shared ones; their owner and admins change them."""

    queryset = SavedView.objects.select_related("owner")
    serializer_class = SavedViewSerializer
    filterset_class = SavedViewFilter
    ordering_fields = ("name",)

    def get_queryset(self) -> QuerySet[SavedView]:
        """One's own, and shared ones of places that one sees."""
        views: QuerySet[SavedView] = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return views.none()
        return views.filter(pk__in=[view.pk for view in usable_views(self.request.user)])

    def create(self, request: Request) -> Response:
        """Save a search; a name in use is refused."""
        return self._keep(_new_view(request), self.sent(request), code=201)

    def update(self, request: Request, **_names: Any) -> Response:
        """Replace name, query and sharing."""
        with self.write():
            view, sent_body = self._changed_view(), self.sent(request)
            view.query, view.is_shared = "", False
            return self._keep(view, sent_body)

    def partial_update(self, request: Request, **_names: Any) -> Response:
        """Rename it, or change its query or sharing."""
        with self.write():
            return self._keep(self._changed_view(), self.sent(request, partial=True))

    @extend_schema(request=None, responses={200: SavedViewSerializer, 204: None})
    def destroy(self, _request: Request, **_names: Any) -> Response:
        """Delete it; ``?dryRun=All`` shows it."""
        with self.write():
            view = self._changed_view()
            if self.is_dry_run:
                return self.show(view)
            view.delete()
            return Response(status=status.HTTP_204_NO_CONTENT)

    def _changed_view(self) -> SavedView:
        """One that the caller may change, locked, at the version that ``If-Match`` names."""
        view: SavedView = self.get_object()
        if not may_change(self.request.user, view):
            raise PermissionDenied
        fresh = SavedView.objects.select_for_update().get(pk=view.pk)
        preconditions.require_match(self.request, self.etag_of(fresh))
        return fresh

    def _keep(self, view: SavedView, sent_body: dict[str, Any], code: int = 200) -> Response:
        for name, value in sent_body.items():
            setattr(view, name, value)
        if roles.is_scoped(self.request.user) and not sees_places(self.request.user, view.query):
            raise PermissionDenied
        taken = SavedView.objects.filter(owner=view.owner, name=view.name).exclude(pk=view.pk)
        if taken.exists():
            error = ValidationError("its owner already has a view of this name", code="unique")
            raise ValidationError({"name": error})
        with self.write():
            return self.show(keep_view(view), code)


def _new_view(request: Request) -> SavedView:
    owner: Any = request.user
    return SavedView(owner=owner)
