"""Validate a ResourceQuota: hard, scopes, selector, conflicts; its update, warnings, scope values.

Source: ``pkg/apis/core/validation/validation.go`` (ValidateResourceQuota and its parts) and
``pkg/registry/core/resourcequota/strategy.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import ErrorType, FieldError, FieldPath, sort_errors
from engine.names import (
    is_integer_resource,
    is_standard_quota_resource,
    label_value_errors,
    namespace_errors,
    object_name_errors,
)
from engine.pod import resource_name_texts
from engine.quantity import Quantity
from engine.resource_quota.scopes import (
    ALLOWED_NAMES,
    CONFLICTS,
    EXISTS_ONLY,
    scope_requirements,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.policy import ResourceQuota
    from engine.selector import ScopeSelectorRequirement

_HARD: Final = FieldPath("spec").child("hard")
_SCOPES: Final = FieldPath("spec").child("scopes")
_EXPRESSIONS: Final = FieldPath("spec").child("scopeSelector", "matchExpressions")
_WITH_VALUES: Final = frozenset({"In", "NotIn"})
_WITHOUT_VALUES: Final = frozenset({"Exists", "DoesNotExist"})
_UNIT: Final = Quantity.from_int(1).nano

_UNSUPPORTED: Final = "unsupported scope"
_UNSUPPORTED_NAME: Final = "unsupported scope applied to resource"
_CONFLICTING: Final = "conflicting scopes"
_EXISTS_TEXT: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_VALUES_TEXT: Final = (
    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
)
# 'Exist' is upstream's own spelling.
_NO_VALUES_TEXT: Final = (
    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
)
_WITH_BOTH_SIDES: Final = ("cpu", "memory", "ephemeral-storage")


def validate_resource_quota(
    quota: ResourceQuota, *, generate_name: str = ""
) -> tuple[FieldError, ...]:
    """List the errors for which an API server refuses a quota, by path and text.

    ``generate_name`` is the prefix from which the server makes the name of a nameless object.
    """
    errors = object_name_errors(quota.name, generate_name) + namespace_errors(quota.namespace)
    for name, quantity in quota.spec_hard.items():
        errors += _hard_errors(name, quantity)
    errors += _scopes_errors(quota)
    errors += _selector_errors(quota)
    return sort_errors(errors)


def update_errors(old: ResourceQuota, new: ResourceQuota) -> tuple[FieldError, ...]:
    """Check an update: the set of scopes is immutable, the scope selector is not."""
    if set(old.scopes) == set(new.scopes):
        return ()
    return (_bad_quota(_SCOPES, _scopes_or_null(new.scopes), "field is immutable"),)


def quota_warnings(quota: ResourceQuota) -> tuple[str, ...]:
    """Warn on creation about requests that exceed the limits."""
    hard = quota.spec_hard
    warnings = []
    for resource in _WITH_BOTH_SIDES:
        bare = () if resource == "ephemeral-storage" else (resource,)
        request = next((name for name in (f"requests.{resource}", *bare) if name in hard), "")
        limit = f"limits.{resource}"
        if request and limit in hard and hard[request] > hard[limit]:
            warnings.append(
                f"ResourceQuota {request} ({hard[request]}) "
                f"should be less than {limit} ({hard[limit]})"
            )
    return tuple(warnings)


def scope_value_errors(quota: ResourceQuota) -> tuple[FieldError, ...]:
    """Find values of scope selectors that Kubernetes stores although they fail every pod.

    They must be label values, which Kubernetes checks only when it evaluates the selector.
    """
    path = _EXPRESSIONS.child("values")
    errors = (
        _bad_quota(path, value, text)
        for requirement in scope_requirements(quota)
        for value in requirement.values
        for text in label_value_errors(value)
    )
    return sort_errors(errors)


def requirement_errors(requirement: ScopeSelectorRequirement, path: FieldPath) -> list[FieldError]:
    """Check one scope requirement: scope, operator and number of values."""
    errors = []
    operator, operator_path = requirement.operator, path.child("operator")
    if requirement.scope_name not in ALLOWED_NAMES:
        errors.append(_bad_quota(path.child("scopeName"), requirement.scope_name, _UNSUPPORTED))
    if requirement.scope_name in EXISTS_ONLY and operator != "Exists":
        errors.append(_bad_quota(operator_path, operator, _EXISTS_TEXT))
    values_path = path.child("values")
    if operator in _WITH_VALUES and not requirement.values:
        errors.append(FieldError(ErrorType.REQUIRED, values_path.text, None, _VALUES_TEXT))
    elif operator in _WITHOUT_VALUES and requirement.values:
        errors.append(_bad_quota(values_path, list(requirement.values), _NO_VALUES_TEXT))
    elif operator not in _WITH_VALUES | _WITHOUT_VALUES:
        errors.append(_bad_quota(operator_path, operator, "not a valid selector operator"))
    return errors


def _hard_errors(name: str, quantity: Quantity) -> list[FieldError]:
    """Check a bounded name and its amount."""
    path = _HARD.key(name)
    texts = resource_name_texts(name)
    # Kubernetes reports an unknown name without a slash twice.
    if "/" not in name and not is_standard_quota_resource(name):
        texts = [*texts, "must be a standard resource for quota"]
    errors = [_bad_quota(path, name, text) for text in texts]
    if quantity.sign < 0:
        errors.append(_bad_quota(path, str(quantity), "must be greater than or equal to 0"))
    if is_integer_resource(name) and quantity.nano % _UNIT:
        errors.append(_bad_quota(path, str(quantity), "must be an integer"))
    return errors


def _scopes_errors(quota: ResourceQuota) -> list[FieldError]:
    errors = []
    scope_list = list(quota.scopes)
    for scope in quota.scopes:
        if scope not in ALLOWED_NAMES:
            errors.append(_bad_quota(_SCOPES, scope_list, _UNSUPPORTED))
        errors += _scope_name_errors(quota, scope, _SCOPES, scope_list)
    if _has_conflict(quota.scopes):
        errors.append(_bad_quota(_SCOPES, scope_list, _CONFLICTING))
    return errors


def _selector_errors(quota: ResourceQuota) -> list[FieldError]:
    """Check the scope selector; as upstream, paths have no index, and conflicts show ``scopes``."""
    errors = []
    requirements = quota.scope_selector or ()
    # Error values show Go's own field names, not those of the JSON.
    shown_selector = {
        "MatchExpressions": [
            {
                "ScopeName": entry.scope_name,
                "Operator": entry.operator,
                "Values": list(entry.values) if entry.values or entry.is_listed else None,
            }
            for entry in requirements
        ]
    }
    for entry in requirements:
        errors += requirement_errors(entry, _EXPRESSIONS)
        errors += _scope_name_errors(quota, entry.scope_name, _EXPRESSIONS, shown_selector)
    if _has_conflict(entry.scope_name for entry in requirements):
        errors.append(_bad_quota(_EXPRESSIONS, _scopes_or_null(quota.scopes), _CONFLICTING))
    return errors


def _scope_name_errors(
    quota: ResourceQuota, scope: str, path: FieldPath, value: object
) -> list[FieldError]:
    """Check the bounded names: one error for each that the scope does not allow."""
    allowed = ALLOWED_NAMES.get(scope)
    return [
        _bad_quota(path, value, _UNSUPPORTED_NAME)
        for name in sorted(quota.spec_hard)
        if allowed is not None and is_standard_quota_resource(name) and name not in allowed
    ]


def _has_conflict(scopes: Iterable[str]) -> bool:
    scope_set = set(scopes)
    return any(conflict <= scope_set for conflict in CONFLICTS)


def _scopes_or_null(scopes: tuple[str, ...]) -> list[str] | None:
    return list(scopes) or None


def _bad_quota(path: FieldPath, value: object, detail: str) -> FieldError:
    return FieldError(ErrorType.INVALID, path.text, value, detail)
