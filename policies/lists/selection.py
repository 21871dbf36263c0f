"""What lists select: FilterBackend, StableOrdering, LabelSelectorFilter, filters, ApiPagination.

For REST views of all apps. What cannot be used is refused: a list that ignored a part of its query
would answer with too much.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan, In
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework.filters import BaseFilterBackend, OrderingFilter
from rest_framework.pagination import LimitOffsetPagination

from engine.selector import SelectorError, SelectorOperator, parse_selector
from policies.rest import VISIBLE, BadParameterError, is_visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from engine.selector import Requirement, Selector


@extend_schema_field(bool)
class TrueFalseFilter(django_filters.TypedChoiceFilter):
    """``true`` or ``false``; a BooleanFilter ignores every other word."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        words: dict[str, Any] = {"choices": [("true", "true"), ("false", "false")]}
        super().__init__(*args, coerce=lambda text: text == "true", **words, **kwargs)


LARGEST: Final = 2**63 - 1
"""What a column of 64 bits holds."""


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


_DIGITS_ALONE: Final = re.compile("-?[0-9]+")


class WholeNumberField(forms.IntegerField):
    """A whole number in digits; the library's field reads 5.0 and other scripts' digits, too."""

    def to_python(self, value: Any) -> int | None:
        """The number, or None for none; raises ``ValidationError``."""
        if value not in self.empty_values and not _DIGITS_ALONE.fullmatch(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        number: int | None = super().to_python(value)
        return number


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": LARGEST})
class WholeNumberFilter(django_filters.NumberFilter):
    """A whole number that a column can hold; a NumberFilter takes 1.5, too, drops the fraction."""

    field_class = WholeNumberField

    def __init__(self, **settings: Any) -> None:
        super().__init__(min_value=0, max_value=LARGEST, **settings)


class UtcFilter(django_filters.DateTimeFilter):
    """A time, compared in UTC: PostgreSQL refuses offsets of sixteen hours and more."""

    def filter(self, rows: QuerySet[Any], moment: datetime | None) -> QuerySet[Any]:
        """Only the rows on one side of the time."""
        filtered: QuerySet[Any] = super().filter(rows, moment and moment.astimezone(UTC))
        return filtered


class IsoUtcFilter(UtcFilter, django_filters.IsoDateTimeFilter):
    """The same, of a time in ISO 8601."""


class FilterBackend(DjangoFilterBackend):
    """The filters of django-filter; a value that is invalid is refused with its code."""

    def filter_queryset(
        self, request: Request, queryset: QuerySet[Any], view: APIView
    ) -> QuerySet[Any]:
        """Only the rows that fit every filter; raises ``BadParameterError``."""
        filterset = self.get_filterset(request, queryset, view)
        for name, declared in filterset.filters.items():
            is_list = isinstance(declared, django_filters.BaseInFilter)
            entries = request.query_params.get(name, "0").split(",") if is_list else []
            if not all(is_visible(entry) for entry in entries):
                message = "must not have empty entries"
                raise BadParameterError(name, message, code="empty_value")
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
                "description": "Fields to sort by; - before a name sorts descending.",
                "schema": {
                    "type": "array",
                    "items": {"type": "string", "enum": keys},
                    "uniqueItems": True,
                },
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
                "schema": {"type": "string", "format": "label-selector", "pattern": VISIBLE},
            }
        ]


MOST_ON_A_PAGE: Final = 500
_LAST_OFFSET: Final = 2**31 - 1
_DIGITS: Final = len(str(_LAST_OFFSET))


class ApiPagination(LimitOffsetPagination):
    """Fifty objects by default."""

    default_limit = 50
    max_limit = MOST_ON_A_PAGE

    def get_limit(self, request: Request) -> int:
        """``limit``; raises ``BadParameterError``."""
        limit = page_number(request, self.limit_query_param, lowest=1, highest=self.max_limit)
        return self.default_limit if limit is None else limit

    def get_offset(self, request: Request) -> int:
        """``offset``; raises ``BadParameterError``."""
        return page_number(request, self.offset_query_param, lowest=0, highest=_LAST_OFFSET) or 0

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of a page, for OpenAPI; every page has all its members."""
        page: dict[str, Any] = super().get_paginated_response_schema(schema)
        return {**page, "required": sorted(page["properties"])}

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """Add the bounds of both parameters, for OpenAPI."""
        schemas = {parameter.name: parameter.type for parameter in self.parameters()}
        return [
            {**parameter, "schema": schemas[parameter["name"]]}
            for parameter in super().get_schema_operation_parameters(view)
        ]

    @classmethod
    def parameters(cls) -> tuple[OpenApiParameter, ...]:
        """Both parameters, for views that have no queryset."""
        limits = {"minimum": 1, "maximum": cls.max_limit, "default": cls.default_limit}
        offsets = {"minimum": 0, "maximum": _LAST_OFFSET, "default": 0}
        return (
            OpenApiParameter(cls.limit_query_param, {"type": "integer", **limits}),
            OpenApiParameter(cls.offset_query_param, {"type": "integer", **offsets}),
        )


def page_number(request: Request, name: str, *, lowest: int, highest: int) -> int | None:
    """A whole number of the query; None if absent, raises ``BadParameterError`` if out of bounds.

    The library would use its default in place of what it cannot read.
    """
    given = request.query_params.get(name)
    if given is None:
        return None
    is_number = given.isascii() and given.isdecimal() and len(given) <= _DIGITS
    if not is_number or not lowest <= int(given) <= highest:
        message = f'Invalid value: "{given}": must be a whole number from {lowest} to {highest}'
        raise BadParameterError(name, message, code="FieldValueInvalid")
    return int(given)


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
