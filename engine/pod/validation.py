"""Validate resources of containers and pod as API servers do: amounts, limits, huge pages.

Source: ``pkg/apis/core/validation/validation.go``. Runs between the two admission passes, so that a
default limit below a user's request is refused here and not by the LimitRange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import ErrorType, FieldError, FieldPath
from engine.names import (
    is_extended_resource,
    is_hugepage,
    is_integer_resource,
    is_native,
    is_over_commit_allowed,
    is_standard_container_resource,
    is_standard_resource,
    qualified_name_errors,
)
from engine.pod.read import PodSpec, read_pod
from engine.pod.totals import aggregate, is_pod_level
from engine.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.resource_list import ResourceList

_PLAIN_NAMES = frozenset({"cpu", "memory", "ephemeral-storage"})  # valid names, fractions allowed
_NEEDED_WITH_PAGES = frozenset({"cpu", "memory"})
_OVERCOMMITTED = "Limit must be set for non overcommitable resources"


def validate_resources(pod: Mapping[str, Any] | PodSpec) -> list[FieldError]:
    """Check the resources of containers, init containers and the pod; raises DecodeError."""
    return list(resource_errors(read_pod(pod)))


def resource_errors(spec: PodSpec) -> Iterator[FieldError]:
    """Yield errors one by one: those of a large pod may exceed the memory."""
    for container in spec.all_containers:
        path = FieldPath(container.path).child("resources")
        yield from validate_requirements(container.requests, container.limits, path)
    if spec.has_resources:
        yield from _pod_level_errors(spec, FieldPath("spec.resources"))


def validate_requirements(
    requests: ResourceList, limits: ResourceList, path: FieldPath
) -> list[FieldError]:
    """Check the resources of one container; keys in byte order."""
    errors: list[FieldError] = []
    for name in sorted(limits):
        errors += _amount_errors(name, limits[name], path, "limits")
    for name in sorted(requests):
        errors += _amount_errors(name, requests[name], path, "requests")
        errors += _balance_errors(name, requests[name], limits.get(name), path)
    stated = {*requests, *limits}
    if stated and stated.isdisjoint(_NEEDED_WITH_PAGES) and any(map(is_hugepage, stated)):
        errors.append(_pod_error(ErrorType.FORBIDDEN, path, "", "HugePages require cpu or memory"))
    return errors


def container_name_errors(name: str, path: FieldPath) -> list[FieldError]:
    """Check a resource's name in a container; two rules may both be broken."""
    faults = resource_name_texts(name)
    if "/" not in name and not is_standard_container_resource(name):
        faults.append("must be a standard resource for containers")
    elif not is_native(name) and not is_extended_resource(name):
        faults.append("doesn't follow extended resource name standard")
    return [_pod_error(ErrorType.INVALID, path, name, text) for text in faults]


def resource_name_texts(name: str) -> list[str]:
    """Check the syntax of any resource's name, and that a name without prefix is known."""
    faults = qualified_name_errors(name)
    if not faults and "/" not in name and not is_standard_resource(name):
        return ["must be a standard resource type or fully qualified"]
    return faults


def _amount_errors(name: str, quantity: Quantity, path: FieldPath, side: str) -> list[FieldError]:
    """Check a name and its amount: not negative, whole where counted, whole huge pages."""
    if name in _PLAIN_NAMES and quantity.nano >= 0:
        return []
    amount_path = path.child(side).key(name)
    errors = container_name_errors(name, amount_path)
    if quantity.nano < 0:
        errors.append(_bad_amount(amount_path, quantity, "must be greater than or equal to 0"))
    if is_integer_resource(name) and quantity.ceil_milli() % 1000:
        errors.append(_bad_amount(amount_path, quantity, "must be an integer"))
    if is_hugepage(name) and not _is_whole_pages(name, quantity):
        detail = f"{quantity} is not positive integer multiple of {name}"
        errors.append(_bad_amount(amount_path, quantity, detail))
    return errors


def _balance_errors(
    name: str, request: Quantity, limit: Quantity | None, path: FieldPath
) -> list[FieldError]:
    """Check a request against its limit, which must be equal without overcommitment."""
    if limit is None:
        if is_over_commit_allowed(name):
            return []
        return [_pod_error(ErrorType.REQUIRED, path.child("limits"), "", _OVERCOMMITTED)]
    if request.nano != limit.nano and not is_over_commit_allowed(name):
        detail = f"must be equal to {name} limit of {limit}"
    elif request.nano > limit.nano:
        detail = f"must be less than or equal to {name} limit of {limit}"
    else:
        return []
    return [_bad_amount(path.child("requests"), request, detail)]


def _is_whole_pages(name: str, quantity: Quantity) -> bool:
    """Whether the amount, in whole bytes, is a multiple of the page size in its name."""
    try:
        page = Quantity.parse(name.removeprefix("hugepages-"))
    except QuantityError:
        return False
    if page.nano <= 0 or page.ceil_milli() % 1000:
        return False
    return quantity.ceil() % page.ceil() == 0


def _pod_level_errors(spec: PodSpec, path: FieldPath) -> list[FieldError]:
    """Check the pod's own resources, alone and against its containers'."""
    errors = validate_requirements(spec.requests, spec.limits, path)
    requested = aggregate(spec, "requests")
    for name, request in sorted(spec.requests.items()):
        if name in requested and is_pod_level(name) and requested[name] > request:
            least = requested[name]
            detail = f"must be greater than or equal to aggregate container requests of {least}"
            errors.append(_bad_amount(path.child("requests").key(name), request, detail))
    for name, least in sorted(aggregate(spec, "limits").items()):
        pod_limit = spec.limits.get(name)
        if pod_limit is not None and is_hugepage(name) and least > pod_limit:
            detail = f"must be greater than or equal to aggregate container limits of {least}"
            errors.append(_bad_amount(path.child("limits").key(name), pod_limit, detail))
    for position, container in enumerate(spec.containers):
        for name, limit in sorted(container.limits.items()):
            pod_most = spec.limits.get(name)
            if pod_most is not None and is_pod_level(name) and limit > pod_most:
                limit_path = path.child("containers").index(position).key(name).child("limits")
                detail = f"must be less than or equal to pod limits of {pod_most}"
                errors.append(_bad_amount(limit_path, limit, detail))
    return errors


def _bad_amount(path: FieldPath, quantity: Quantity, detail: str) -> FieldError:
    return _pod_error(ErrorType.INVALID, path, str(quantity), detail)


def _pod_error(error_type: ErrorType, path: FieldPath, value: str, detail: str) -> FieldError:
    return FieldError(error_type, str(path), value, detail)
