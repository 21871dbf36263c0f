"""Problems of one BundleObject: shape, old and new names, rules of its kind.

The rules themselves are the engine's and those of ``policies.object_rules``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import DecodeError, ErrorType, FieldError
from engine.kept_tests import decode_kept_test, validate_kept_test
from engine.limit_range import decode_limit_range, validate_limit_range
from engine.metadata_policy import decode_metadata_policy, validate_metadata_policy
from engine.names import dns1123_label_errors
from engine.namespace_class import (
    POLICY_KINDS,
    decode_namespace_class,
    filled_in,
    references,
    validate_namespace_class,
)
from engine.policy import decode_enforcement, decode_in_api_server
from engine.resource_quota import (
    decode_quota_configuration,
    decode_resource_quota,
    encode_limited_resource,
    validate_limited_resources,
    validate_resource_quota,
)
from policies.manifests.objects import CLUSTER_KINDS, BundleObject
from policies.manifests.schema import KINDS, QUOTA_CONFIGURATION, TWICE, TYPE, shape_findings
from policies.object_rules import metadata_errors, priority_class_errors, text_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from policies.manifests.documents import Problem
    from policies.manifests.schema import Finding, Shape

    Rules = Callable[[Mapping[str, Any]], Iterable[FieldError]]

NEW_AND_OLD_NAMES = (
    ("defaultRequest", "defaultRequests"),
    ("maxLimitRequestRatio", "limitRequestRatio"),
    ("policyAction", "PolicyAction"),
)


def object_problems(item: BundleObject) -> list[Problem]:
    """All problems of one object; its rules are checked only if its shape is right."""
    if problems := shape_problems(item, KINDS[item.kind]):
        return problems
    return [item.problem(*finding) for finding in _rule_findings(item)]


def class_problems(item: BundleObject) -> list[Problem]:
    """All problems of a namespace class, with those of the shapes of its policies."""
    problems = shape_problems(item, KINDS[item.kind])
    if problems := problems or problems_of_policies(item):
        return problems
    try:
        errors = [
            *text_errors(item.value),
            *validate_namespace_class(decode_namespace_class(item.value)),
        ]
    except DecodeError as error:
        return [item.problem(error.field, error.detail, code=TYPE)]
    unique = dict.fromkeys((error.field, error.message, error.type.cause) for error in errors)
    return [item.problem(field, message, code=code) for field, message, code in unique]


def problems_of_policies(item: BundleObject) -> list[Problem]:
    """Every deviation of a class's policies from the shapes of their kinds."""
    spec = item.value.get("spec") or {}
    policies = [
        BundleObject(policy, item.document, item.at(f"spec.policies[{index}]"))
        for index, policy in enumerate(spec.get("policies") or [])
    ]
    return [problem for policy in policies for problem in _policy_problems(policy)]


def _policy_problems(policy: BundleObject) -> list[Problem]:
    """Deviations from the shape of its kind, where parameters may stand for quantities."""
    if not isinstance(policy.value, dict):
        return [policy.problem("", "must be a map with apiVersion and kind", code=TYPE)]
    if policy.kind not in POLICY_KINDS:
        return []  # the rules say which kinds there are
    stand_in = {name: "1" for _, name, may_stand in references(policy.value) if may_stand}
    filled = BundleObject(filled_in(policy.value, stand_in), policy.document, policy.path)
    return shape_problems(filled, KINDS[policy.kind])


def shape_problems(item: BundleObject, shape: Shape) -> list[Problem]:
    """Every field that is unknown to the shape, has a wrong type, or stands under two names."""
    shape_deviations = list(shape_findings(item.value, shape))
    shape_deviations += _old_and_new_names(item.value)
    return [item.problem(*finding) for finding in shape_deviations]


def configuration_problems(item: BundleObject) -> list[Problem]:
    """All problems of the quota plugin's configuration."""
    if problems := shape_problems(item, QUOTA_CONFIGURATION):
        return problems
    try:
        entries = decode_quota_configuration(item.value)
    except DecodeError as error:
        return [item.problem(error.field, error.detail)]
    return [
        item.problem(error.field, error.message) for error in validate_limited_resources(entries)
    ]


def limited_resources(item: BundleObject) -> tuple[dict[str, Any], ...]:
    """The entries of a configuration without problems, as they are stored."""
    return tuple(encode_limited_resource(entry) for entry in decode_quota_configuration(item.value))


def _old_and_new_names(value: Any) -> list[Finding]:
    """Find a field that stands under both its old and its new name."""
    twice_named: list[Finding] = []
    spec = value.get("spec") if isinstance(value, dict) else None
    for name in ("limits", "rules"):
        entries = spec.get(name) if isinstance(spec, dict) else None
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            given_entry = entry if isinstance(entry, dict) else {}
            twice_named += [
                (
                    f"spec.{name}[{index}].{old}",
                    f"{old} is an old name of {new}",
                    "give only one",
                    TWICE,
                )
                for new, old in NEW_AND_OLD_NAMES
                if new in given_entry and old in given_entry
            ]
    return twice_named


def _rule_findings(item: BundleObject) -> list[Finding]:
    """Check the rules; an object that cannot be decoded is one finding."""
    manifest = item.value
    rule_errors = [*text_errors(manifest), *metadata_errors(item.metadata)]
    # Kubernetes checks these for every kind. ``generateName`` is no name: nothing would find it.
    if not item.name:
        no_name = "give it a name: without one it could not be found again"
        rule_errors.append(FieldError(ErrorType.REQUIRED, "metadata.name", None, no_name))
    if item.namespace and item.kind not in CLUSTER_KINDS:
        rule_errors += [
            FieldError(ErrorType.INVALID, "metadata.namespace", item.namespace, text)
            for text in dns1123_label_errors(item.namespace)
        ]
    try:
        decode_enforcement(item.metadata.get("annotations"))
        decode_in_api_server(item.metadata.get("annotations"))
        rule_errors += _RULES_OF_KIND[item.kind](manifest)
    except DecodeError as error:
        return [(error.field, error.detail, "", TYPE)]
    # The rules of metadata and those of the kind may find the same error.
    unique = dict.fromkeys((error.field, error.message, error.type.cause) for error in rule_errors)
    return [(field, message, "", code) for field, message, code in unique]


def _namespace_errors(manifest: Mapping[str, Any]) -> Iterable[FieldError]:
    name = (manifest.get("metadata") or {}).get("name") or ""
    label_errors = dns1123_label_errors(name) if name else []
    return [FieldError(ErrorType.INVALID, "metadata.name", name, text) for text in label_errors]


def _priority_class_errors(manifest: Mapping[str, Any]) -> Iterable[FieldError]:
    class_value = manifest.get("value")
    return priority_class_errors(
        name=(manifest.get("metadata") or {}).get("name") or "",
        value=int(class_value) if class_value is not None else 0,
        preemption_policy=manifest.get("preemptionPolicy") or "",
        global_default=bool(manifest.get("globalDefault")),
    )


_RULES_OF_KIND: dict[str, Rules] = {
    "Namespace": _namespace_errors,
    "PriorityClass": _priority_class_errors,
    "LimitRange": lambda manifest: validate_limit_range(decode_limit_range(manifest)),
    "MetadataPolicy": lambda manifest: validate_metadata_policy(decode_metadata_policy(manifest)),
    "ResourceQuota": lambda manifest: validate_resource_quota(decode_resource_quota(manifest)),
    "PolicyTest": lambda manifest: validate_kept_test(decode_kept_test(manifest)),
}
