"""Decode, validate and encode a MetadataPolicy: rules, predicate, action, protected keys; warnings.

Source: the seed's design with the resolutions of the semantics reference, section 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError, ErrorType, FieldError, FieldPath, sort_errors
from engine.fields import decode_string_map, expect
from engine.names import annotations_errors, labels_errors, object_name_errors
from engine.policy import (
    MetadataPolicy,
    MetadataPolicyRule,
    PolicyAction,
    PolicyPredicate,
    decode_enforcement,
    encode_enforcement,
)
from engine.selector import LabelSelector, validate_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

API_VERSION: Final = "policy.gatehouse.dev/v1alpha1"
QOS_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/qos"
MAX_RULES: Final = 64

_KUBERNETES: Final = "kubernetes.io/"
_ALLOWED_KEYS: Final = frozenset({"scheduler.alpha.kubernetes.io/name"})
_ALLOWED_PREFIXES: Final = ("app.kubernetes.io/",)  # meant to be set by whoever runs a namespace
_PROTECTED: Final = "is set by Kubernetes or by this product itself; a policy may not set it"


def decode_metadata_policy(manifest: Mapping[str, Any]) -> MetadataPolicy:
    """Decode a manifest; rules may use the seed's ``PolicyAction``. Raises ``DecodeError``."""
    shape = expect(manifest, dict, "", "MetadataPolicy")
    metadata = expect(shape.get("metadata"), dict, "metadata", "ObjectMeta")
    spec = expect(shape.get("spec"), dict, "spec", "MetadataPolicySpec")
    rules = expect(spec.get("rules"), list, "spec.rules", "[]MetadataPolicyRule")
    annotations = expect(metadata.get("annotations"), dict, "metadata.annotations", "map")
    return MetadataPolicy(
        name=expect(metadata.get("name"), str, "metadata.name", "string"),
        namespace=expect(metadata.get("namespace"), str, "metadata.namespace", "string"),
        rules=tuple(_decode_rule(rule, f"spec.rules[{i}]") for i, rule in enumerate(rules)),
        ratchet=expect(spec.get("ratchet"), bool, "spec.ratchet", "bool"),
        strict=expect(spec.get("strict"), bool, "spec.strict", "bool"),
        enforcement=decode_enforcement(annotations),
    )


def _decode_rule(raw: object, path: str) -> MetadataPolicyRule:
    rule = expect(raw, dict, path, "MetadataPolicyRule")
    predicate_path = f"{path}.policyPredicate"
    predicate = expect(rule.get("policyPredicate"), dict, predicate_path, "PolicyPredicate")
    return MetadataPolicyRule(
        policy_predicate=PolicyPredicate(
            label_selector=_decode_selector(predicate, "labelSelector", predicate_path),
            annotation_selector=_decode_selector(predicate, "annotationSelector", predicate_path),
        ),
        policy_action=_decode_action(rule, path),
    )


def _decode_selector(shape: Mapping[str, Any], name: str, path: str) -> LabelSelector | None:
    selector = shape.get(name)
    return None if selector is None else LabelSelector.decode(selector, f"{path}.{name}")


def _decode_action(rule: Mapping[str, Any], path: str) -> PolicyAction:
    names = [name for name in ("policyAction", "PolicyAction") if rule.get(name) is not None]
    if len(names) != 1:
        detail = f"{path}.policyAction: Required value"
        if names:
            detail = f"{path}: policyAction and PolicyAction are two names of one field; give one"
        raise DecodeError(f"{path}.policyAction", detail)
    at = f"{path}.{names[0]}"
    action = expect(rule[names[0]], dict, at, "PolicyAction")
    return PolicyAction(
        reject=expect(action.get("reject"), bool, f"{at}.reject", "bool"),
        updated_labels=decode_string_map(action.get("updatedLabels"), f"{at}.updatedLabels"),
        updated_annotations=decode_string_map(
            action.get("updatedAnnotations"), f"{at}.updatedAnnotations"
        ),
    )


def encode_metadata_policy(policy: MetadataPolicy) -> dict[str, Any]:
    """Encode the manifest with today's field names; of empty fields only ``reject`` is written."""
    metadata: dict[str, Any] = {"name": policy.name}
    if policy.namespace:
        metadata["namespace"] = policy.namespace
    if annotations := encode_enforcement(policy.enforcement):
        metadata["annotations"] = annotations
    spec: dict[str, Any] = {"rules": [_encode_rule(rule) for rule in policy.rules]}
    flags = {"ratchet": policy.ratchet, "strict": policy.strict}
    spec.update({name: True for name, is_set in flags.items() if is_set})
    return {
        "apiVersion": API_VERSION,
        "kind": "MetadataPolicy",
        "metadata": metadata,
        "spec": spec,
    }


def _encode_rule(rule: MetadataPolicyRule) -> dict[str, Any]:
    selectors = {
        "labelSelector": rule.policy_predicate.label_selector,
        "annotationSelector": rule.policy_predicate.annotation_selector,
    }
    action: dict[str, Any] = {"reject": rule.policy_action.reject}
    if rule.policy_action.updated_labels:
        action["updatedLabels"] = dict(rule.policy_action.updated_labels)
    if rule.policy_action.updated_annotations:
        action["updatedAnnotations"] = dict(rule.policy_action.updated_annotations)
    predicate = {name: given.encode() for name, given in selectors.items() if given is not None}
    return {"policyPredicate": predicate, "policyAction": action}


def validate_metadata_policy(
    policy: MetadataPolicy, *, generate_name: str = ""
) -> tuple[FieldError, ...]:
    """List the errors of a policy: names, selectors, updates and protected keys.

    ``generate_name`` is the prefix from which the server makes the name of a nameless object.
    """
    errors = object_name_errors(policy.name, generate_name)
    rules = FieldPath("spec").child("rules")
    if len(policy.rules) > MAX_RULES:
        detail = f"must have at most {MAX_RULES} items"
        errors.append(FieldError(ErrorType.TOO_MANY, rules.text, len(policy.rules), detail))
    for index, rule in enumerate(policy.rules):
        errors += _rule_errors(rule, rules.index(index))
    return sort_errors(errors)


def _rule_errors(rule: MetadataPolicyRule, path: FieldPath) -> list[FieldError]:
    predicate, action = rule.policy_predicate, rule.policy_action
    place = path.child("policyPredicate")
    errors: list[FieldError] = []
    if predicate.label_selector is not None:
        errors += validate_label_selector(predicate.label_selector, place.child("labelSelector"))
    if predicate.annotation_selector is not None:
        errors += validate_label_selector(
            predicate.annotation_selector, place.child("annotationSelector"), label_values=False
        )
    labels = path.child("policyAction", "updatedLabels")
    annotations = path.child("policyAction", "updatedAnnotations")
    errors += labels_errors(action.updated_labels, labels)
    errors += annotations_errors(action.updated_annotations, annotations)
    errors += _protected_errors(action.updated_labels, labels)
    errors += _protected_errors(action.updated_annotations, annotations)
    return errors


def _protected_errors(keys: Iterable[str], path: FieldPath) -> list[FieldError]:
    return [
        FieldError(ErrorType.FORBIDDEN, path.key(key).text, key, _PROTECTED)
        for key in keys
        if is_protected(key)
    ]


def is_protected(key: str) -> bool:
    """Whether only Kubernetes or this product may set the key, as the QoS annotation."""
    # Keys of annotations are valid in any case: capitals must not bypass the check.
    lowered_key = key.lower()
    if lowered_key in _ALLOWED_KEYS or lowered_key.startswith(_ALLOWED_PREFIXES):
        return False
    return _KUBERNETES in lowered_key


def metadata_policy_warnings(policy: MetadataPolicy) -> tuple[str, ...]:
    """List rules that are valid and surely not meant."""
    found: list[str] = []
    for index, rule in enumerate(policy.rules):
        action, predicate = rule.policy_action, rule.policy_predicate
        selectors = (predicate.label_selector, predicate.annotation_selector)
        updates = bool(action.updated_labels or action.updated_annotations)
        place = f"spec.rules[{index}]"
        if action.reject and updates:
            found.append(f"{place}: reject wins: the updated labels and annotations are never set")
        if not action.reject and not updates:
            found.append(f"{place}: the action does nothing")
        if action.reject and all(selector in (None, LabelSelector()) for selector in selectors):
            found.append(f"{place}: rejects every object of the namespace")
    return tuple(found)
