"""Errors of a NamespaceClass: names, patterns, selector, parameters, each policy with defaults."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError, ErrorType, FieldError, FieldPath, sort_errors
from engine.limit_range import decode_limit_range, validate_limit_range
from engine.metadata_policy import API_VERSION, decode_metadata_policy, validate_metadata_policy
from engine.names import dns1123_label_errors
from engine.namespace_class.parameters import filled_in, references, value_problem
from engine.policy import decode_enforcement
from engine.resource_quota import decode_resource_quota, validate_resource_quota
from engine.selector import validate_label_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.namespace_class.definition import NamespaceClass

MOST_PARAMETERS: Final = 16
MOST_POLICIES: Final = 20
LONGEST_NAME: Final = 40
POLICY_KINDS: Final = {"LimitRange": "v1", "MetadataPolicy": API_VERSION, "ResourceQuota": "v1"}
"""The kinds of a class's policies, and their versions."""
_SPEC: Final = FieldPath("spec")
_NAME_PATTERN: Final = re.compile(r"[-a-z0-9*]{1,63}")
_PARAMETER_NAME: Final = re.compile(rf"[a-z](?:[-a-z0-9]{{0,{LONGEST_NAME - 2}}}[a-z0-9])?")
_RULES: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterable[FieldError]]]] = {
    "LimitRange": lambda manifest: validate_limit_range(decode_limit_range(manifest)),
    "MetadataPolicy": lambda manifest: validate_metadata_policy(decode_metadata_policy(manifest)),
    "ResourceQuota": lambda manifest: validate_resource_quota(decode_resource_quota(manifest)),
}


def validate_namespace_class(namespace_class: NamespaceClass) -> tuple[FieldError, ...]:
    """List the errors of a class; its policies are judged with the defaults of its parameters."""
    name = namespace_class.name
    errors = [
        FieldError(ErrorType.INVALID, "metadata.name", name, text)
        for text in dns1123_label_errors(name)
    ]
    selector = namespace_class.selector
    errors += _pattern_errors(namespace_class.clusters, _SPEC.child("clusters"))
    errors += _pattern_errors(selector.names, _SPEC.child("selector", "names"))
    errors += validate_label_selector(selector.labels, _SPEC.child("selector"))
    errors += _parameter_errors(namespace_class)
    errors += _policy_errors(namespace_class)
    return sort_errors(errors)


def _pattern_errors(patterns: tuple[str, ...], path: FieldPath) -> Iterator[FieldError]:
    detail = "must be a name of lower-case letters, digits and -, in which * stands for any text"
    for index, pattern in enumerate(patterns):
        if not _NAME_PATTERN.fullmatch(pattern):
            yield FieldError(ErrorType.INVALID, path.index(index).text, pattern, detail)


def _parameter_errors(namespace_class: NamespaceClass) -> Iterator[FieldError]:
    parameters, path = namespace_class.parameters, _SPEC.child("parameters")
    if len(parameters) > MOST_PARAMETERS:
        detail = f"must have at most {MOST_PARAMETERS} items"
        yield FieldError(ErrorType.TOO_MANY, path.text, len(parameters), detail)
    known: set[str] = set()
    used = {name for policy in namespace_class.policies for _, name, _ in references(policy)}
    for index, parameter in enumerate(parameters):
        place = path.index(index)
        if not _PARAMETER_NAME.fullmatch(parameter.name):
            detail = (
                f"must be at most {LONGEST_NAME} lower-case letters, digits and -,"
                " and begin with a letter"
            )
            yield FieldError(ErrorType.INVALID, place.child("name").text, parameter.name, detail)
        elif parameter.name in known:
            yield FieldError(ErrorType.DUPLICATE, place.child("name").text, parameter.name)
        elif parameter.name not in used:
            detail = f"no policy has $({parameter.name})"
            yield FieldError(ErrorType.INVALID, place.child("name").text, parameter.name, detail)
        known.add(parameter.name)
        if problem := value_problem(parameter, parameter.default):
            default = place.child("default").text
            yield FieldError(ErrorType.INVALID, default, parameter.default, problem)


def _policy_errors(namespace_class: NamespaceClass) -> Iterator[FieldError]:
    policies, path = namespace_class.policies, _SPEC.child("policies")
    if len(policies) > MOST_POLICIES:
        detail = f"must have at most {MOST_POLICIES} items"
        yield FieldError(ErrorType.TOO_MANY, path.text, len(policies), detail)
    defaults = {each.name: each.default for each in namespace_class.parameters}
    seen: set[tuple[str, str]] = set()
    for index, policy in enumerate(policies):
        place = path.index(index)
        if policy.get("kind") not in tuple(POLICY_KINDS):
            detail = f"supported values: {', '.join(POLICY_KINDS)}"
            kind = place.child("kind").text
            yield FieldError(ErrorType.NOT_SUPPORTED, kind, policy.get("kind"), detail)
            continue
        yield from _reference_errors(policy, place, defaults)
        yield from _errors_of(policy, place, defaults)
        metadata = policy.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if (key := (str(policy["kind"]), str(name))) in seen:
            yield FieldError(ErrorType.DUPLICATE, place.child("metadata", "name").text, name)
        seen.add(key)


def _reference_errors(
    policy: Mapping[str, Any], place: FieldPath, defaults: Mapping[str, str]
) -> Iterator[FieldError]:
    for path, name, may_stand in references(policy):
        field = f"{place.text}.{path}"
        if not may_stand:
            detail = "a parameter stands for a whole value, and for no name"
            yield FieldError(ErrorType.INVALID, field, f"$({name})", detail)
        elif name not in defaults:
            detail = f"there is no parameter {name}; known: {', '.join(defaults) or 'none'}"
            yield FieldError(ErrorType.NOT_FOUND, field, f"$({name})", detail)


def _errors_of(
    policy: Mapping[str, Any], place: FieldPath, defaults: Mapping[str, str]
) -> Iterator[FieldError]:
    """The errors of one policy by the rules of its kind, and of its place in a class."""
    kind = str(policy["kind"])
    if policy.get("apiVersion") != POLICY_KINDS[kind]:
        version, detail = policy.get("apiVersion"), f"supported values: {POLICY_KINDS[kind]}"
        yield FieldError(ErrorType.NOT_SUPPORTED, place.child("apiVersion").text, version, detail)
    filled = filled_in(policy, defaults)
    metadata = filled.get("metadata")
    if isinstance(metadata, dict) and metadata.get("namespace"):
        detail = "the policies of a class are made in many namespaces: leave it out"
        namespace = place.child("metadata", "namespace").text
        yield FieldError(ErrorType.FORBIDDEN, namespace, metadata["namespace"], detail)
    try:
        decode_enforcement(metadata.get("annotations") if isinstance(metadata, dict) else None)
        errors = tuple(_RULES[kind](filled))
    except DecodeError as error:
        errors = (FieldError(ErrorType.INVALID, error.field, error.bad_value, error.detail),)
    for each in errors:
        yield replace(each, field=f"{place.text}.{each.field}")
