"""What lists select: ApiPagination, FilterBackend, StableOrdering, LabelSelectorFilter, lookups.

For REST views of all apps. What cannot be used is refused: a list that ignored a part of its query
would answer with too much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import django_filters
from django import forms
from django.db.models import Q, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan, In
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.filters import BaseFilterBackend, OrderingFilter
from rest_framework.pagination import LimitOffsetPagination

from engine.selector import SelectorError, SelectorOperator, parse_selector
from policies.rest import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from engine.selector import Requirement, Selector


TRUE_OR_FALSE: Final[dict[str, Any]] = {
    "choices": [("true", "true"), ("false", "false")],
    "coerce": lambda text: text == "true",
}
"""Arguments of a TypedChoiceFilter; a BooleanFilter ignores every other word."""


class ApiPagination(LimitOffsetPagination):
    """Fifty objects by default."""

    default_limit = 50
    max_limit = 500

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of a page, for OpenAPI; every page has all its members."""
        page: dict[str, Any] = super().get_paginated_response_schema(schema)
        return {**page, "required": sorted(page["properties"])}


class CharInFilter(django_filters.BaseInFilter, django_filters.CharFilter):
    """One of several texts, separated by commas."""


class ChoiceInFilter(django_filters.BaseInFilter, django_filters.ChoiceFilter):
    """One of several choices, separated by commas."""


class ContainsFilter(django_filters.CharFilter):
    """A part of a text, with its upper and lower case."""

    def filter(self, rows: QuerySet[Any], part: str) -> QuerySet[Any]:
        """Only rows whose text has the part."""
        # SQLite's LIKE, on which the lookup ``contains`` is built, takes "A" for "a".
        return rows.filter(GreaterThan(StrIndex(self.field_name, Value(part)), 0)) if part else rows


class WholeNumberFilter(django_filters.NumberFilter):
    """A whole number; a NumberFilter takes 1.5, too, and drops the fraction."""

    field_class = forms.IntegerField


class FilterBackend(DjangoFilterBackend):
    """The filters of django-filter; a value that is empty or invalid is refused with its code."""

    def filter_queryset(
        self, request: Request, queryset: QuerySet[Any], view: APIView
    ) -> QuerySet[Any]:
        """Only the rows that fit every filter; raises ``BadParameterError``."""
        filterset = self.get_filterset(request, queryset, view)
        for name in filterset.filters:
            # django-filter would leave the filter out, and answer with everything.
            if name in request.query_params and not request.query_params[name].strip():
                raise BadParameterError(name, "must not be empty", code="empty_value")
        for name, errors in filterset.errors.as_data().items():
            raise BadParameterError(name, errors[0].messages[0], code=errors[0].code)
        filtered: QuerySet[Any] = filterset.qs
        return filtered


class StableOrdering(OrderingFilter):
    """``ordering`` by the view's ``ordering_fields``, with the id as the last key."""

    def get_ordering(
        self, request: Request, queryset: QuerySet[Any], view: APIView
    ) -> Sequence[str] | None:
        """The keys in order, None for the view's own; raises ``BadParameterError``."""
        given_keys = request.query_params.get(self.ordering_param)
        if given_keys is None:
            return None
        keys = [key.strip() for key in given_keys.split(",")]
        usable_keys = self.remove_invalid_fields(queryset, keys, view, request)
        for key in keys:
            if key not in usable_keys:
                raise BadParameterError(
                    self.ordering_param,
                    f'Unsupported value: "{key}": supported values: {_quoted(view)}',
                    code="FieldValueNotSupported",
                )
        if len({key.removeprefix("-") for key in keys}) < len(keys):
            message = f'Duplicate value: "{given_keys}"'
            raise BadParameterError(self.ordering_param, message, code="FieldValueDuplicate")
        # Without it rows of equal keys may change places between two pages.
        return [*keys, "pk"]

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """The parameter, for OpenAPI."""
        names = view.ordering_fields  # type: ignore[attr-defined]  # ours have them
        keys = [sign + name for name in names for sign in ("", "-")]
        return [
            {
                "name": self.ordering_param,
                "required": False,
                "in": "query",
                "description": "Fields to sort by, - before a name: descending.",
                "schema": {"type": "array", "items": {"type": "string", "enum": keys}},
                "explode": False,
                "style": "form",
            }
        ]


def _quoted(view: APIView) -> str:
    return ", ".join(f'"{name}"' for name in view.ordering_fields)  # type: ignore[attr-defined]  # ours have them


class LabelSelectorFilter(BaseFilterBackend):
    """``labelSelector`` as Kubernetes writes it, on views whose objects have ``labels``."""

    parameter: Final = "labelSelector"

    def filter_queryset(
        self, request: Request, queryset: QuerySet[Any], _view: APIView
    ) -> QuerySet[Any]:
        """Only rows whose labels match; raises ``BadParameterError`` with the engine's words."""
        given_selector = request.query_params.get(self.parameter)
        if given_selector is None:
            return queryset
        try:
            selector = parse_selector(given_selector)
        except SelectorError as error:
            raise BadParameterError(self.parameter, str(error), code="FieldValueInvalid") from error
        return with_labels(queryset, selector)

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """The parameter, for OpenAPI and for the view's own check; none without labels."""
        columns = view.queryset.model._meta.get_fields()  # type: ignore[attr-defined]  # noqa: SLF001  ours have one; Django's public name
        if not any(column.name == "labels" for column in columns):
            return []
        return [
            {
                "name": self.parameter,
                "required": False,
                "in": "query",
                "description": "As in kubectl get -l: a=b,c!=d,e in (f,g),h,!i",
                "schema": {"type": "string"},
            }
        ]


MOST_CONDITIONS: Final = 20
"""Conditions of one statement; SQLite refuses a thousand."""
_EQUAL: Final = (SelectorOperator.IN, SelectorOperator.EQUALS, SelectorOperator.DOUBLE_EQUALS)
_UNEQUAL: Final = (SelectorOperator.NOT_IN, SelectorOperator.NOT_EQUALS)
_COMPARING: Final = (SelectorOperator.GREATER_THAN, SelectorOperator.LESS_THAN)


def with_labels(rows: QuerySet[Any], selector: Selector) -> QuerySet[Any]:
    """Only the rows with labels that the selector matches, on every database as in the engine."""
    in_database = [each for each in selector.requirements if _is_exact_in_database(each)]
    in_database = in_database[:MOST_CONDITIONS]
    for requirement in in_database:
        rows = rows.filter(_condition(requirement))
    others = [each for each in selector.requirements if each not in in_database]
    if not others:
        return rows
    matching_keys = [
        key
        for key, labels in rows.order_by().values_list("pk", "labels")
        if all(requirement.matches(labels) for requirement in others)
    ]
    return rows.filter(pk__in=matching_keys)


def _is_exact_in_database(requirement: Requirement) -> bool:
    if requirement.operator in _COMPARING:
        return False
    # Django takes a key that reads as a number for a place in a list.
    try:
        int(requirement.key)
    except ValueError:
        return True
    return False


def _condition(requirement: Requirement) -> Q:
    has_key = Q(labels__has_key=requirement.key)
    if requirement.operator == SelectorOperator.EXISTS:
        return has_key
    if requirement.operator == SelectorOperator.DOES_NOT_EXIST:
        return ~has_key
    is_listed = Q(In(KeyTextTransform(requirement.key, "labels"), list(requirement.values)))
    if requirement.operator in _EQUAL:
        return is_listed
    # An object without the key differs from every value.
    return ~has_key | ~is_listed
