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
_ENTRY_FIELDS: Final = frozenset({"apiGroup", "resource", "matchContains", "matchScopes"})
_SCOPE_FIELDS: Final = frozenset({"scopeName", "operator", "values"})
_CONFIGURATIONS: Final = {
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
    raw_entries = expect_objects(entries, _LIST, go_field, go_type)
    return tuple(_decode_entry(entry, f"{_LIST}[{i}]") for i, entry in enumerate(raw_entries))


def decode_quota_configuration(configuration: object) -> tuple[LimitedResource, ...]:
    """Decode the whole configuration of Kubernetes' quota plugin; null is an empty one.

    Raises DecodeError for another kind or version, an unknown field, a wrong type.
    """
    if configuration is None:
        return ()
    raw = expect_map(configuration, "", "AdmissionPluginConfiguration.configuration")
    kind = expect_string(raw.get("kind"), "kind", "TypeMeta.kind of type string")
    version = expect_string(
        raw.get("apiVersion"), "apiVersion", "TypeMeta.apiVersion of type string"
    )
    if (version, kind) not in _CONFIGURATIONS:
        raise DecodeError("kind", f'no kind "{kind}" is registered for version "{version}"')
    _refuse_unknown(raw, {"kind", "apiVersion", _LIST}, "")
    entries = raw.get(_LIST)
    return decode_limited_resources(entries, struct=kind, version=version.rpartition("/")[2])


def _decode_entry(raw: Mapping[str, Any], path: str) -> LimitedResource:
    _refuse_unknown(raw, _ENTRY_FIELDS, path)
    go_field = f"LimitedResource.{_LIST}"
    scopes_path = f"{path}.matchScopes"
    go_type = "v1.ScopedResourceSelectorRequirement"
    match_scopes = expect_objects(
        raw.get("matchScopes"), scopes_path, f"{go_field}.matchScopes", go_type
    )
    for index, scope in enumerate(match_scopes):
        _refuse_unknown(scope, _SCOPE_FIELDS, f"{scopes_path}[{index}]")
    return LimitedResource(
        api_group=_entry_text(raw, "apiGroup", path),
        resource=_entry_text(raw, "resource", path),
        match_contains=expect_strings(
            raw.get("matchContains"),
            f"{path}.matchContains",
            f"{go_field}.matchContains of type []string",
        ),
        match_scopes=tuple(
            decode_scope(scope, f"{scopes_path}[{index}]", f"{_LIST}.matchScopes")
            for index, scope in enumerate(match_scopes)
        ),
    )


def _entry_text(raw: Mapping[str, Any], key: str, path: str) -> str:
    go_field = f"LimitedResource.{_LIST}.{key} of type string"
    return expect_string(raw.get(key), f"{path}.{key}", go_field)


def _refuse_unknown(raw: Mapping[str, Any], known: Iterable[str], path: str) -> None:
    for name in sorted(set(raw) - set(known)):
        field = f"{path}.{name}" if path else name
        raise DecodeError(field, f'strict decoding error: unknown field "{field}"')


def encode_limited_resource(entry: LimitedResource) -> dict[str, Any]:
    """Encode one entry without empty fields."""
    raw: dict[str, Any] = {"apiGroup": entry.api_group} if entry.api_group else {}
    raw["resource"] = entry.resource
    if entry.match_contains:
        raw["matchContains"] = list(entry.match_contains)
    if entry.match_scopes:
        raw["matchScopes"] = [encode_scope(requirement) for requirement in entry.match_scopes]
    return raw


def validate_limited_resources(entries: Sequence[LimitedResource]) -> tuple[FieldError, ...]:
    """List the errors of entries: no resource, or a scope that cannot be evaluated."""
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        path = FieldPath(_LIST).index(index)
        if not entry.resource:
            errors.append(FieldError(ErrorType.REQUIRED, path.child("resource").text))
        for position, scope in enumerate(entry.match_scopes):
            scope_path = path.child("matchScopes").index(position)
            errors += requirement_errors(scope, scope_path)
            errors += [
                FieldError(ErrorType.INVALID, scope_path.child("values").index(i).text, value, text)
                for i, value in enumerate(scope.values)
                for text in label_value_errors(value)
            ]
    return sort_errors(errors)


def limited_scopes(
    entries: Iterable[LimitedResource], test: ScopeTest | None
) -> tuple[ScopeSelectorRequirement, ...]:
    """Find the scopes that limit the object, in the entries of *every* resource, as upstream does.

    Raises ScopeError for a scope that cannot be evaluated; Kubernetes then admits unchecked.
    """
    return tuple(scope for entry in entries for scope in matching_scopes(test, entry.match_scopes))


def limited_names(
    entries: Iterable[LimitedResource], resource: GroupVersionResource, usage: ResourceList
) -> set[str]:
    """Find the used names that entries for the resource limit by substring."""
    substrings = [
        substring
        for entry in entries
        if (entry.api_group, entry.resource) == (resource.group, resource.resource)
        for substring in entry.match_contains
    ]
    if not substrings:
        return set()
    return {
        name
        for name, quantity in usage.items()
        if quantity.sign > 0 and any(substring in name for substring in substrings)
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
            requirement.scope_name == scope_name and _covers_value(requirement, value)
            for requirement in scope_requirements(quota)
        )
    )


def _covers_value(requirement: ScopeSelectorRequirement, value: str) -> bool:
    if not value:
        return True
    try:
        return matches_value(requirement, value)
    except SelectorError:
        return False
