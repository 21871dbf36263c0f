"""Shape of each kind: known fields, value types; deviations ("unknown field", "must be")."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.errors import ErrorType, FieldError
from engine.quantity import Quantity, QuantityError
from engine.wire import RawNumber

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Finding = tuple[str, str, str, str]  # field, message, hint, code
UNKNOWN: Final = "unknown_field"
TWICE: Final = "two_names"
TYPE: Final = "FieldValueTypeInvalid"
AMOUNT: Final = ErrorType.INVALID.cause


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of a value; ``word`` names it in messages."""

    word: str
    fields: Mapping[str, Shape] | None = None
    entries: Shape | None = None
    values: Shape | None = None


ANYTHING = Shape("anything")
TEXT = Shape("text")
QUANTITY_OR_TEXT = Shape("text or a quantity")
SWITCH = Shape("true or false")
INTEGER = Shape("a whole number")
QUANTITY = Shape("a quantity")
TEXTS = Shape("a map of texts", values=TEXT)
QUANTITIES = Shape("a map of quantities", values=QUANTITY)


def _map_shape(**fields: Shape) -> Shape:
    return Shape("a map", fields=fields)


def _list_shape(entries: Shape) -> Shape:
    return Shape("a list", entries=entries)


# Exported manifests contain these fields of servers.
_SERVER_FIELDS = (
    "uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds"
    " managedFields ownerReferences finalizers selfLink clusterName"
).split()
METADATA = _map_shape(
    name=TEXT,
    generateName=TEXT,
    namespace=TEXT,
    labels=TEXTS,
    annotations=TEXTS,
    **dict.fromkeys(_SERVER_FIELDS, ANYTHING),
)
SCOPE_EXPRESSIONS = _list_shape(_map_shape(scopeName=TEXT, operator=TEXT, values=_list_shape(TEXT)))
SELECTOR = _map_shape(
    matchLabels=TEXTS,
    matchExpressions=_list_shape(_map_shape(key=TEXT, operator=TEXT, values=_list_shape(TEXT))),
)
_LIMIT_AMOUNTS = (
    "max min default defaultRequest defaultRequests maxLimitRequestRatio limitRequestRatio"
).split()
_ACTION = _map_shape(reject=SWITCH, updatedLabels=TEXTS, updatedAnnotations=TEXTS)
_RULE = _map_shape(
    policyPredicate=_map_shape(labelSelector=SELECTOR, annotationSelector=SELECTOR),
    policyAction=_ACTION,
    PolicyAction=_ACTION,
)
LIMITED_RESOURCES = _list_shape(
    _map_shape(
        apiGroup=TEXT, resource=TEXT, matchContains=_list_shape(TEXT), matchScopes=SCOPE_EXPRESSIONS
    )
)


_PARAMETER = _map_shape(name=TEXT, type=TEXT, default=QUANTITY_OR_TEXT, description=TEXT)


def _object_shape(**fields: Shape) -> Shape:
    return _map_shape(apiVersion=TEXT, kind=TEXT, metadata=METADATA, status=ANYTHING, **fields)


KINDS: Mapping[str, Shape] = {
    "Namespace": _object_shape(spec=ANYTHING),
    "LimitRange": _object_shape(
        spec=_map_shape(
            limits=_list_shape(_map_shape(type=TEXT, **dict.fromkeys(_LIMIT_AMOUNTS, QUANTITIES)))
        )
    ),
    "ResourceQuota": _object_shape(
        spec=_map_shape(
            hard=QUANTITIES,
            scopes=_list_shape(TEXT),
            scopeSelector=_map_shape(matchExpressions=SCOPE_EXPRESSIONS),
        )
    ),
    "MetadataPolicy": _object_shape(
        spec=_map_shape(rules=_list_shape(_RULE), ratchet=SWITCH, strict=SWITCH)
    ),
    "PolicyTest": _object_shape(
        spec=_map_shape(
            **dict.fromkeys(("operation", "subResource", "user", "decision"), TEXT),
            expect=_map_shape(verdict=TEXT, reasons=_list_shape(TEXT), patch=_list_shape(ANYTHING)),
            used=Shape("a map of maps of quantities", values=QUANTITIES),
            object=ANYTHING,
            oldObject=ANYTHING,
        )
    ),
    "PriorityClass": _object_shape(
        value=INTEGER, globalDefault=SWITCH, description=TEXT, preemptionPolicy=TEXT
    ),
    "NamespaceClass": _object_shape(
        spec=_map_shape(
            description=TEXT,
            clusters=_list_shape(TEXT),
            selector=_map_shape(names=_list_shape(TEXT), **(SELECTOR.fields or {})),
            parameters=_list_shape(_PARAMETER),
            policies=_list_shape(ANYTHING),
            onLeave=TEXT,
        )
    ),
}
QUOTA_CONFIGURATION = _map_shape(apiVersion=TEXT, kind=TEXT, limitedResources=LIMITED_RESOURCES)


def shape_findings(value: Any, shape: Shape, path: str = "") -> Iterator[Finding]:
    """Every deviation of a value from a shape; ``null`` fits everywhere, as in Kubernetes."""
    if value is None or shape is ANYTHING:
        return
    is_map = isinstance(value, dict)
    inner_shape = shape.values if is_map else shape.entries if isinstance(value, list) else None
    if shape.fields is not None and is_map:
        yield from _field_findings(value, shape.fields, path)
    elif inner_shape is not None:
        for key, shaped in value.items() if is_map else enumerate(value):
            yield from shape_findings(shaped, inner_shape, f"{path}[{key}]")
    elif shape is QUANTITY:
        yield from _quantity_findings(value, path)
    elif not _fits_shape(value, shape):
        yield (
            path,
            f"must be {shape.word}, not {_type_words(value)}",
            _type_hint(value, shape),
            TYPE,
        )


def _field_findings(
    value: dict[str, Any], fields: Mapping[str, Shape], path: str
) -> Iterator[Finding]:
    for name, field_value in value.items():
        field_path = f"{path}.{name}" if path else name
        if name in fields:
            yield from shape_findings(field_value, fields[name], field_path)
        else:
            near_fields = difflib.get_close_matches(name, fields, n=1)
            guess = f"did you mean {near_fields[0]}? " if near_fields else ""
            known_fields = f"{guess}known: {', '.join(fields)}"
            yield field_path, f'unknown field "{name}"', known_fields, UNKNOWN


def _fits_shape(value: Any, shape: Shape) -> bool:
    if shape is SWITCH:
        return isinstance(value, bool)
    if shape is INTEGER:
        return isinstance(value, RawNumber) and value.lstrip("-").isdecimal()
    if shape is QUANTITY_OR_TEXT:
        return isinstance(value, str)
    return shape is TEXT and isinstance(value, str) and not isinstance(value, RawNumber)


def _quantity_findings(value: Any, path: str) -> Iterator[Finding]:
    try:
        parsed_quantity = Quantity.parse_json(value)
    except QuantityError as error:
        quantity_error = FieldError(ErrorType.INVALID, path, value, error.detail)
        yield path, quantity_error.message, 'write it like "500m", "2" or "1Gi"', AMOUNT
        return
    if parsed_quantity.is_infinite:
        yield path, "an amount beyond all bounds", "exponents go to 60", AMOUNT


def _type_words(mistyped: Any) -> str:
    if isinstance(mistyped, bool):
        return "true" if mistyped else "false"
    if isinstance(mistyped, RawNumber):
        return f"the number {mistyped}"
    if isinstance(mistyped, dict):
        return "a map"
    return "a list" if isinstance(mistyped, list) else "text"


def _type_hint(mistyped: Any, shape: Shape) -> str:
    if shape is TEXT and not isinstance(mistyped, dict | list):
        return "put it in quotes: an unquoted yes, no, on, off or number is no text"
    if shape.entries is not None:
        return "begin each entry with a dash"
    return ""
