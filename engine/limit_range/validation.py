"""Validate a LimitRange object: item types, names, order of min, default and max, ratio errors.

Source: ``ValidateLimitRange`` in ``pkg/apis/core/validation/validation.go``. Expects the object
after API defaulting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import ErrorType, FieldError, FieldPath
from engine.limit_range.constraints import ratio_text
from engine.limit_range.manifest import CLAIM, CONTAINER, POD
from engine.names import (
    dns1123_subdomain_errors,
    is_over_commit_allowed,
    namespace_errors,
    qualified_name_errors,
)
from engine.pod import container_name_errors, resource_name_texts
from engine.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.policy import LimitRange, LimitRangeItem

ITEM_TYPES = frozenset({CONTAINER, POD, CLAIM})
_RATIO_ONE = Quantity.from_int(1)
_NO_STORAGE = "either minimum or maximum storage value is required, but neither was provided"


def validate_limit_range(
    limit_range: LimitRange, *, needs_namespace: bool = False
) -> tuple[FieldError, ...]:
    """List the errors of a LimitRange: items in order, resources by name, rules as in Kubernetes.

    An empty name is valid, since the server generates one. So is an empty namespace, which the
    server takes from the request, unless ``needs_namespace``.
    """
    name, namespace = limit_range.name, limit_range.namespace
    errors = [
        FieldError(ErrorType.INVALID, "metadata.name", name, text)
        for text in (dns1123_subdomain_errors(name) if name else ())
    ]
    errors += namespace_errors(namespace)
    if needs_namespace and not namespace:
        errors.append(FieldError(ErrorType.REQUIRED, "metadata.namespace"))
    seen_types: set[str] = set()
    for position, item in enumerate(limit_range.items):
        item_path = FieldPath("spec.limits").index(position)
        errors += _type_errors(item.type, seen_types, item_path.child("type"))
        seen_types.add(item.type)
        errors += _item_errors(item, item_path)
    return tuple(dict.fromkeys(errors))


def _type_errors(item_type: str, seen_types: set[str], path: FieldPath) -> list[FieldError]:
    texts = qualified_name_errors(item_type)
    if not texts and "/" not in item_type and item_type not in ITEM_TYPES:
        texts = ["must be a standard limit type or fully qualified"]
    errors = [FieldError(ErrorType.INVALID, str(path), item_type, text) for text in texts]
    if item_type in seen_types:
        errors.append(FieldError(ErrorType.DUPLICATE, str(path), item_type))
    return errors


def _item_errors(item: LimitRangeItem, item_path: FieldPath) -> Iterator[FieldError]:
    """Check the names in each map, the demands of the type, then every resource."""
    defaults = {"default": item.default, "defaultRequest": item.default_request}
    not_for_pods = [key for key, given in defaults.items() if given and item.type == POD]
    bounds = {
        "max": item.max,
        "min": item.min,
        **({"default": {}, "defaultRequest": {}} if item.type == POD else defaults),
        "maxLimitRequestRatio": item.max_limit_request_ratio,
    }
    for key, resources in bounds.items():
        if key in not_for_pods:
            detail = "may not be specified when `type` is 'Pod'"
            yield FieldError(ErrorType.FORBIDDEN, str(item_path.child(key)), "", detail)
        for name in sorted(resources):
            yield from _name_errors(item.type, name, item_path.child(key).key(name))
    if item.type == CLAIM and not {"storage"} & {*item.min, *item.max}:
        yield FieldError(ErrorType.REQUIRED, str(item_path.child("limits")), "", _NO_STORAGE)
    for name in sorted({name for resources in bounds.values() for name in resources}):
        amounts = {key: resources.get(name) for key, resources in bounds.items()}
        yield from _order_errors(name, amounts, item_path)
        yield from _ratio_errors(name, amounts, item_path)
        yield from _overcommit_errors(name, amounts, item_path)


def _name_errors(item_type: str, name: str, path: FieldPath) -> list[FieldError]:
    """Check a resource's name; pods and containers allow fewer than claims."""
    if item_type in {POD, CONTAINER}:
        return container_name_errors(name, path)
    texts = resource_name_texts(name)
    return [FieldError(ErrorType.INVALID, str(path), name, text) for text in texts]


# smaller, larger, path, the value shown, what the larger one is called
_ORDER = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)

ItemAmounts = dict[str, Quantity | None]


def _order_errors(name: str, amounts: ItemAmounts, path: FieldPath) -> Iterator[FieldError]:
    """Check min <= default request <= default <= max, as far as they are stated."""
    for low, high, where, shown, text in _ORDER:
        smaller, larger = amounts[low], amounts[high]
        if smaller is not None and larger is not None and smaller > larger:
            field = str(path.child(where).key(name))
            yield FieldError(
                ErrorType.INVALID, field, str(amounts[shown]), text.format(smaller, larger)
            )


def _ratio_errors(name: str, amounts: ItemAmounts, path: FieldPath) -> Iterator[FieldError]:
    """Check that the ratio is at least 1, and that max/min leaves room for it."""
    ratio, minimum, maximum = amounts["maxLimitRequestRatio"], amounts["min"], amounts["max"]
    if ratio is None:
        return
    field = str(path.child("maxLimitRequestRatio").key(name))
    if ratio < _RATIO_ONE:
        yield FieldError(ErrorType.INVALID, field, str(ratio), f"ratio {ratio} is less than 1")
    if minimum is None or maximum is None:
        return
    room = _room_exceeded(ratio, minimum, maximum)
    if room:
        detail = f"ratio {ratio} is greater than max/min = {room}"
        yield FieldError(ErrorType.INVALID, field, str(ratio), detail)


def _room_exceeded(ratio: Quantity, minimum: Quantity, maximum: Quantity) -> str:
    """Render max/min if the ratio exceeds it; a minimum of 0 allows every ratio."""
    if minimum.is_zero:
        return "-Inf" if maximum.sign < 0 else ""
    sign = minimum.sign
    exceeded = ratio.nano * minimum.nano * sign > maximum.nano * _RATIO_ONE.nano * sign
    return ratio_text(maximum.nano, minimum.nano) if exceeded else ""


def _overcommit_errors(name: str, amounts: ItemAmounts, path: FieldPath) -> Iterator[FieldError]:
    """Check that a resource without overcommitment has one default for request and limit."""
    limit, request = amounts["default"], amounts["defaultRequest"]
    if limit is None or request is None or limit == request or is_over_commit_allowed(name):
        return
    field = str(path.child("defaultRequest").key(name))
    detail = f"default value {limit} must equal to defaultRequest value {request} in {name}"
    yield FieldError(ErrorType.INVALID, field, str(request), detail)
