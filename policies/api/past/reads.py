"""PastReads: lists and single reads of recorded objects take ``at``, and answer as they do now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.http import Http404
from rest_framework.response import Response

from policies import history, roles
from policies.api.past.classes import past_classes
from policies.api.past.filter import (
    KEYS_OF_CLASSES,
    KEYS_OF_OBJECTS,
    ORDERING,
    PastClassFilter,
    PastObjectFilter,
    ordered,
    require_answerable,
)
from policies.api.past.records import past_records
from policies.history import at_parameter
from policies.lists.selection import FilterBackend

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet
    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

READS = ("list", "retrieve")


class TakesInstant:
    """Part of a view, before its others: the list and single objects take ``at``."""

    action: str

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add the instant."""
        parameters: Sequence[OpenApiParameter] = super().parameters_of(action)  # type: ignore[misc]  # of KnownParameters
        return (*parameters, at_parameter.AT) if action in READS else parameters

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """Add the answer to an instant that no record reaches."""
        problems: dict[int, str] = super().problems_of(method, is_detail=is_detail)  # type: ignore[misc]  # of KnownParameters
        return problems | at_parameter.BEFORE_HORIZON if self.action in READS else problems


class _PastQuery:
    """What a filter backend asks of a view."""

    def __init__(self, filterset_class: type[Any]) -> None:
        self.filterset_class = filterset_class


class PastReads(TakesInstant):
    """Objects whose every write is on record, as of an instant; what is deleted since is there."""

    request: Any
    queryset: Any
    lookup_field: str
    past_filter: ClassVar[type[Any]] = PastObjectFilter
    past_keys: ClassVar[Mapping[str, str]] = KEYS_OF_OBJECTS
    past_names: ClassVar[dict[str, Any]] = {"cluster": "cluster", "namespace": "namespace"}
    """The lookups of ``roles.visible`` among revisions."""

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return a page of objects, as of ``at`` if it is given."""
        instant = at_parameter.instant_of(request)
        view: Any = self
        if instant is None:
            answer: Response = super().list(request, *args, **kwargs)  # type: ignore[misc]  # the view's own
            return answer
        # What revisions answer, as far as the list of today knows it.
        filters = set(view.filterset_class.base_filters) & set(self.past_filter.base_filters)
        require_answerable(request, {*filters, ORDERING})
        rows = ordered(request, self.past_rows(instant), self.past_keys)
        query: Any = _PastQuery(self.past_filter)
        page = view.paginate_queryset(FilterBackend().filter_queryset(request, rows, query))
        shown = view.get_serializer(self.past_objects(page, instant), many=True).data
        past: Response = view.get_paginated_response(shown)
        return past

    def retrieve(self, request: Request, *args: Any, **names: Any) -> Response:
        """Return one object, as of ``at`` if it is given; then without an ETag."""
        instant = at_parameter.instant_of(request)
        view: Any = self
        if instant is None:
            answer: Response = super().retrieve(request, *args, **names)  # type: ignore[misc]  # the view's own
            return answer
        require_answerable(request, ())
        found = self._one(instant, names).first()
        if found is None:
            raise Http404
        [past] = self.past_objects([found], instant)
        return Response(view.get_serializer(past).data)

    def past_rows(self, instant: dt.datetime, name: str | None = None) -> QuerySet[Any]:
        """The revisions of the view's kind in force, or of one name, as far as the user sees."""
        user = self.request.user
        writes = history.revisions_at(history.clusters_seen(user), instant)
        names = None if name is None else [name]
        rows = history.in_force(writes, kinds=[self.queryset.model.kind], names=names)
        return roles.visible(rows, user, **self.past_names)

    def past_objects(self, rows: Sequence[Any], instant: dt.datetime) -> Sequence[Any]:
        """The objects of some revisions, for the view's serializer."""
        return past_records(rows, self.queryset.model, instant)

    def _one(self, instant: dt.datetime, names: Mapping[str, Any]) -> QuerySet[Any]:
        """The row of the object of an address, which has a name, or the number it has today."""
        if self.lookup_field == "name":
            return self.past_rows(instant, names["name"])
        stored = self.get_object()  # type: ignore[attr-defined]  # the view's own
        return self.past_rows(instant, stored.name).filter(
            cluster=stored.owner.name, namespace=stored.namespace_name, uid=str(stored.uid)
        )


class PastNamespaces(PastReads):
    """Namespaces of the past: a namespace is seen by its own name."""

    past_names: ClassVar = {"cluster": "cluster", "namespace": "name"}


class PastOfClusters(PastReads):
    """Objects of whole clusters: seen by whoever sees a part of their cluster."""

    past_names: ClassVar = {"cluster": "cluster"}


class PastClasses(PastReads):
    """Namespace classes of the past, for those who see all clusters."""

    past_filter = PastClassFilter
    past_keys = KEYS_OF_CLASSES

    def past_rows(self, instant: dt.datetime, name: str | None = None) -> QuerySet[Any]:
        """All of them or one, or none: they are of the whole fleet."""
        versions = history.class_versions_at(instant)
        if name is not None:
            versions = versions.filter(name=name)
        return versions if roles.sees_all(self.request.user) else versions.none()

    def past_objects(self, rows: Sequence[Any], instant: dt.datetime) -> Sequence[Any]:
        """The classes of some versions, with the namespaces that they matched."""
        return past_classes(rows, history.clusters_seen(self.request.user), instant)
