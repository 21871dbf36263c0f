"""``limitedResources``: entries decoded, encoded, validated; what they limit, which quotas cover.

Source: ``apiserver/pkg/admission/plugin/resourcequota/{apis,config.go,controller.go}``. Kubernetes
checks only that ``resource`` is set; an invalid ``matchScopes`` then disables its quotas, so that
this validation refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError, ErrorType, FieldError, FieldPath, sort_errors
from engine.fields import expect_map, expect_objects, expect_string, expect_strings
from engine.names import label_value_errors
from engine.policy import LimitedResource
from engine.resource_quota.definition import decode_scope, encode_scope
from engine.resource_quota.scopes import matching_scopes, scope_requirements
from engine.resource_quota.validation import requirement_errors
from engine.selector import SelectorError, matches_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.policy import ResourceQuota
    from engine.request import GroupVersionResource
    from engine.resource_list import ResourceList
    from engine.resource_quota.scopes import ScopeTest
    from engine.selector import ScopeSelectorRequirement

_LIST: Final = "limitedResources"
_FIELDS: Final = frozenset({"apiGroup", "resource", "matchContains", "matchScopes"})
_SCOPE_FIELDS: Final = frozenset({"scopeName", "operator", "values"})
_KINDS: Final = {
    ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
    ("resourcequota.admission.k8s.io/v1beta1", "Configuration"),
    ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"),
}


def decode_limited_resources(
    entries: object, *, struct: str = "ResourceQuotaConfiguration", version: str = "v1"
) -> tuple[LimitedResource, ...]:
    """Decode the list; raises DecodeError for unknown fields, too.

    ``struct`` and ``version`` name the configuration in Go's texts.
    """
    go_field, go_type = f"{struct}.{_LIST}", f"{version}.LimitedResource"
    shapes = expect_objects(entries, _LIST, go_field, go_type)
    return tuple(_decode_entry(shape, f"{_LIST}[{i}]") for i, shape in enumerate(shapes))


def decode_quota_configuration(configuration: object) -> tuple[LimitedResource, ...]:
    """Decode the whole configuration of Kubernetes' quota plugin; null is an empty one.

    Raises DecodeError for another kind or version, an unknown field, a wrong type.
    """
    if configuration is None:
        return ()
    shape = expect_map(configuration, "", "AdmissionPluginConfiguration.configuration")
    kind = expect_string(shape.get("kind"), "kind", "TypeMeta.kind of type string")
    version = expect_string(
        shape.get("apiVersion"), "apiVersion", "TypeMeta.apiVersion of type string"
    )
    if (version, kind) not in _KINDS:
        raise DecodeError("kind", f'no kind "{kind}" is registered for version "{version}"')
    _refuse_unknown(shape, {"kind", "apiVersion", _LIST}, "")
    entries = shape.get(_LIST)
    return decode_limited_resources(entries, struct=kind, version=version.rpartition("/")[2])


def _decode_entry(shape: Mapping[str, Any], path: str) -> LimitedResource:
    _refuse_unknown(shape, _FIELDS, path)
    go_field = f"LimitedResource.{_LIST}"
    scopes = f"{path}.matchScopes"
    go_type = "v1.ScopedResourceSelectorRequirement"
    requirements = expect_objects(
        shape.get("matchScopes"), scopes, f"{go_field}.matchScopes", go_type
    )
    for index, requirement in enumerate(requirements):
        _refuse_unknown(requirement, _SCOPE_FIELDS, f"{scopes}[{index}]")
    return LimitedResource(
        api_group=_text(shape, "apiGroup", path),
        resource=_text(shape, "resource", path),
        match_contains=expect_strings(
            shape.get("matchContains"),
            f"{path}.matchContains",
            f"{go_field}.matchContains of type []string",
        ),
        match_scopes=tuple(
            decode_scope(requirement, f"{scopes}[{index}]", f"{_LIST}.matchScopes")
            for index, requirement in enumerate(requirements)
        ),
    )


def _text(shape: Mapping[str, Any], key: str, path: str) -> str:
    go_field = f"LimitedResource.{_LIST}.{key} of type string"
    return expect_string(shape.get(key), f"{path}.{key}", go_field)


def _refuse_unknown(shape: Mapping[str, Any], known: Iterable[str], path: str) -> None:
    for name in sorted(set(shape) - set(known)):
        field = f"{path}.{name}" if path else name
        raise DecodeError(field, f'strict decoding error: unknown field "{field}"')


def encode_limited_resource(entry: LimitedResource) -> dict[str, Any]:
    """Encode one entry without empty fields."""
    shape: dict[str, Any] = {"apiGroup": entry.api_group} if entry.api_group else {}
    shape["resource"] = entry.resource
    if entry.match_contains:
        shape["matchContains"] = list(entry.match_contains)
    if entry.match_scopes:
        shape["matchScopes"] = [encode_scope(requirement) for requirement in entry.match_scopes]
    return shape


def validate_limited_resources(entries: Sequence[LimitedResource]) -> tuple[FieldError, ...]:
    """List the errors of entries: no resource, or a scope that cannot be evaluated."""
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        path = FieldPath(_LIST).index(index)
        if not entry.resource:
            errors.append(FieldError(ErrorType.REQUIRED, path.child("resource").text))
        for position, requirement in enumerate(entry.match_scopes):
            place = path.child("matchScopes").index(position)
            errors += requirement_errors(requirement, place)
            errors += [
                FieldError(ErrorType.INVALID, place.child("values").index(i).text, value, text)
                for i, value in enumerate(requirement.values)
                for text in label_value_errors(value)
            ]
    return sort_errors(errors)


def limited_scopes(
    entries: Iterable[LimitedResource], test: ScopeTest | None
) -> tuple[ScopeSelectorRequirement, ...]:
    """Find the scopes that limit the object, in the entries of *every* resource, as upstream does.

    Raises ScopeError for a scope that cannot be evaluated; Kubernetes then admits unchecked.
    """
    return tuple(found for entry in entries for found in matching_scopes(test, entry.match_scopes))


def limited_names(
    entries: Iterable[LimitedResource], resource: GroupVersionResource, usage: ResourceList
) -> set[str]:
    """Find the used names that entries for the resource limit by substring."""
    parts = [
        part
        for entry in entries
        if (entry.api_group, entry.resource) == (resource.group, resource.resource)
        for part in entry.match_contains
    ]
    if not parts:
        return set()
    return {
        name
        for name, quantity in usage.items()
        if quantity.sign > 0 and any(part in name for part in parts)
    }


def uncovered_scopes(
    limited: Iterable[ScopeSelectorRequirement], covered: Iterable[ScopeSelectorRequirement]
) -> tuple[ScopeSelectorRequirement, ...]:
    """Find the limited scopes that no quota covers; only the scope's name is compared."""
    # Upstream ignores operator and values here, so that any quota of the scope covers.
    names = {requirement.scope_name for requirement in covered}
    return tuple(requirement for requirement in limited if requirement.scope_name not in names)


def covering_quotas(
    quotas: Iterable[ResourceQuota], scope_name: str, value: str = ""
) -> tuple[ResourceQuota, ...]:
    """Find the quotas that cover objects of a scope and, for scopes with classes, of a class.

    ``value`` is the name of a PriorityClass or VolumeAttributesClass; other scopes have none. A
    single entry covers, even of a quota that does not match as a whole.
    """
    return tuple(
        quota
        for quota in quotas
        if any(
            requirement.scope_name == scope_name and _agrees(requirement, value)
            for requirement in scope_requirements(quota)
        )
    )


def _agrees(requirement: ScopeSelectorRequirement, value: str) -> bool:
    if not value:
        return True
    try:
        return matches_value(requirement, value)
    except SelectorError:
        return False
