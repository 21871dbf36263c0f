"""What lists of the past are narrowed and sorted by: the columns of revisions, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import django_filters

from policies.history.at_parameter import AT
from policies.lists.members import FIELDS
from policies.lists.selection import (
    ApiPagination,
    CharInFilter,
    ContainsFilter,
    IsoUtcFilter,
    WholeNumberFilter,
)
from policies.models import NamespaceClassVersion, PolicyRevision
from policies.rest import MOMENTS, BadParameterError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.db.models import QuerySet
    from rest_framework.request import Request

ORDERING: Final = "ordering"
KEYS_OF_OBJECTS: Final = {"name": "name", "updated": "created", "revision": "number"}
"""The columns of a revision that are an object's keys to sort by."""
KEYS_OF_CLASSES: Final = {"name": "name", "updated": "created", "version": "number"}


class _UpdatedFilter(IsoUtcFilter):
    """The time of the last write by then."""

    def __init__(self, lookup: str) -> None:
        super().__init__(field_name="created", lookup_expr=lookup, validators=MOMENTS)


class _PastFilter(django_filters.FilterSet):
    name = django_filters.CharFilter(lookup_expr="icontains")
    name__exact = django_filters.CharFilter(field_name="name")
    name__in = CharInFilter(field_name="name")
    name__contains = ContainsFilter(field_name="name")
    updated__gte = _UpdatedFilter("gte")
    updated__gt = _UpdatedFilter("gt")
    updated__lte = _UpdatedFilter("lte")
    updated__lt = _UpdatedFilter("lt")


class PastObjectFilter(_PastFilter):
    """Objects in force at an instant by place, name, revision and last write."""

    cluster = django_filters.CharFilter()
    cluster__in = CharInFilter(field_name="cluster")
    namespace = django_filters.CharFilter()
    namespace__in = CharInFilter(field_name="namespace")
    revision__gte = WholeNumberFilter(field_name="number", lookup_expr="gte")
    revision__lte = WholeNumberFilter(field_name="number", lookup_expr="lte")

    class Meta:
        model = PolicyRevision
        fields: ClassVar[list[str]] = []


class PastClassFilter(_PastFilter):
    """Classes in force at an instant by name, version and last write."""

    version__gte = WholeNumberFilter(field_name="number", lookup_expr="gte")
    version__lte = WholeNumberFilter(field_name="number", lookup_expr="lte")

    class Meta:
        model = NamespaceClassVersion
        fields: ClassVar[list[str]] = []


def require_answerable(request: Request, known: Collection[str]) -> None:
    """Raise ``BadParameterError`` for what can be asked of now alone.

    ``known`` are the parameters that the record answers, beside page and members.
    """
    always = {AT.name, FIELDS.name, *(each.name for each in ApiPagination.parameters())}
    for name in request.query_params:
        if name not in always and name not in known:
            message = f"{name} cannot be asked of the past: leave it out, or leave out {AT.name}"
            raise BadParameterError(name, message, code="not_in_the_past")


def ordered(request: Request, rows: QuerySet[Any], columns: Mapping[str, str]) -> QuerySet[Any]:
    """Sort by keys that are on record; raises ``BadParameterError`` for another one."""
    given = request.query_params.get(ORDERING)
    if given is None:
        return rows
    keys = [each.strip() for each in given.split(",")]
    for key in keys:
        if key.removeprefix("-") not in columns:
            message = f'"{key}" is not on record; supported with {AT.name}: {", ".join(columns)}'
            raise BadParameterError(ORDERING, message, code="not_in_the_past")
    # Rows of equal keys keep their order by place.
    places = rows.query.order_by
    return rows.order_by(
        *(("-" if key.startswith("-") else "") + columns[key.removeprefix("-")] for key in keys),
        *places,
    )
