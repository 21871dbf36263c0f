"""CustomResourceDefinition of MetadataPolicy: OpenAPI properties, CEL validations, maximums.

The API server bounds the cost of CEL: it refuses rules over fields without a maximum length. Rules
beyond its budget are checked by the portal, when it reads the object.
"""

from __future__ import annotations

from typing import Any, Final

from engine.metadata_policy import API_VERSION
from engine.policy import ENFORCEMENT_ANNOTATION
from sync.connect.permissions import POLICY_CRD

_GROUP, _VERSION = API_VERSION.split("/")
MAX_RULES: Final = 64
MAX_ENTRIES: Final = 32
"""The most entries of a selector, and the most keys that one action sets."""
MAX_VALUES: Final = 256
_MAX_KEY: Final = 317
_MAX_LABEL: Final = 63
_MAX_ANNOTATION: Final = 262144
_LABEL_VALUE: Final = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
_NEEDS_VALUES: Final = (
    "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : "
    "!has(self.values) || size(self.values) == 0"
)
_PROTECTED: Final = (
    "self.all(k, !k.lowerAscii().contains('kubernetes.io/') || "
    "k.lowerAscii().startsWith('app.kubernetes.io/') || "
    "k.lowerAscii() == 'scheduler.alpha.kubernetes.io/name')"
)
_PROTECTED_MESSAGE: Final = "keys of kubernetes.io are set by Kubernetes or by the portal itself"


def metadata_policy_definition() -> dict[str, Any]:
    """Make the CustomResourceDefinition."""
    # Kubernetes' JSONPath reads an unescaped dot as a step.
    annotation_path = ENFORCEMENT_ANNOTATION.replace(".", "\\.")
    names = {
        "kind": "MetadataPolicy",
        "listKind": "MetadataPolicyList",
        "plural": "metadatapolicies",
        "singular": "metadatapolicy",
        "shortNames": ["mdp"],
    }
    crd_version = {
        "name": _VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {
                "name": "Enforcement",
                "type": "string",
                "jsonPath": f".metadata.annotations.{annotation_path}",
            },
            {"name": "Ratchet", "type": "boolean", "jsonPath": ".spec.ratchet"},
            {"name": "Strict", "type": "boolean", "jsonPath": ".spec.strict"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {"openAPIV3Schema": _policy_schema()},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": POLICY_CRD},
        "spec": {"group": _GROUP, "scope": "Namespaced", "names": names, "versions": [crd_version]},
    }


def _policy_schema() -> dict[str, Any]:
    spec = _object_schema(
        {
            "rules": {
                "type": "array",
                "maxItems": MAX_RULES,
                "x-kubernetes-list-type": "atomic",
                "items": _rule_schema(),
            },
            "ratchet": {
                "type": "boolean",
                "description": "refuse an update only if the old object did not match already",
            },
            "strict": {
                "type": "boolean",
                "description": "check rejects again on the final object",
            },
        },
        description="Rules over labels and annotations of all objects of the namespace.",
    )
    status = _object_schema({"observedGeneration": {"type": "integer", "format": "int64"}})
    return {
        "type": "object",
        "description": "MetadataPolicy rejects or completes objects by labels and annotations.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }


def _rule_schema() -> dict[str, Any]:
    predicate = _object_schema(
        {
            "labelSelector": _selector_schema(is_labels=True),
            "annotationSelector": _selector_schema(is_labels=False),
        },
        description="Both must hold; an absent one always holds, an empty one matches everything.",
    )
    action = _object_schema(
        {
            "reject": {
                "type": "boolean",
                "default": False,
                "description": "refuse the object; wins over all updates",
            },
            "updatedLabels": _updates_schema(is_labels=True),
            "updatedAnnotations": _updates_schema(is_labels=False),
        }
    )
    return _object_schema(
        {"policyPredicate": predicate, "policyAction": action}, required=["policyAction"]
    )


def _selector_schema(*, is_labels: bool) -> dict[str, Any]:
    """The schema of a selector over labels, whose values have a syntax, or over annotations."""
    match_labels = _text_map_schema(is_labels=is_labels)
    match_labels["x-kubernetes-validations"] = _key_validations(is_labels=is_labels)
    selector_fields = {
        "matchLabels": match_labels,
        "matchExpressions": {
            "type": "array",
            "maxItems": MAX_ENTRIES,
            "x-kubernetes-list-type": "atomic",
            "items": _requirement_schema(is_labels=is_labels),
        },
    }
    return {**_object_schema(selector_fields), "x-kubernetes-map-type": "atomic"}


def _requirement_schema(*, is_labels: bool) -> dict[str, Any]:
    # Kubernetes, too, validates the keys of annotations in lower case.
    cel_key = "self.key" if is_labels else "self.key.lowerAscii()"
    cel_rules = [
        {
            "rule": _NEEDS_VALUES,
            "message": "values must be given for In and NotIn, and only for these",
            "fieldPath": ".values",
        },
        {
            "rule": f"!format.qualifiedName().validate({cel_key}).hasValue()",
            "message": "must be a qualified name: [prefix/]name",
            "fieldPath": ".key",
        },
    ]
    requirement_fields = {
        "key": {"type": "string", "maxLength": _MAX_KEY},
        "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
        "values": {
            "type": "array",
            "maxItems": MAX_VALUES,
            "x-kubernetes-list-type": "atomic",
            "items": _text_schema(is_labels=is_labels),
        },
    }
    requirement = _object_schema(requirement_fields, required=["key", "operator"])
    return {**requirement, "x-kubernetes-validations": cel_rules}


def _updates_schema(*, is_labels: bool) -> dict[str, Any]:
    updates_schema = _text_map_schema(is_labels=is_labels)
    protected = {"rule": _PROTECTED, "message": _PROTECTED_MESSAGE}
    updates_schema["x-kubernetes-validations"] = [*_key_validations(is_labels=is_labels), protected]
    return updates_schema


def _text_map_schema(*, is_labels: bool) -> dict[str, Any]:
    values = _text_schema(is_labels=is_labels)
    return {"type": "object", "maxProperties": MAX_ENTRIES, "additionalProperties": values}


def _text_schema(*, is_labels: bool) -> dict[str, Any]:
    # A pattern costs nothing; CEL over so many values would exceed the budget.
    if is_labels:
        return {"type": "string", "maxLength": _MAX_LABEL, "pattern": _LABEL_VALUE}
    return {"type": "string", "maxLength": _MAX_ANNOTATION}


def _key_validations(*, is_labels: bool) -> list[dict[str, str]]:
    cel_key = "k" if is_labels else "k.lowerAscii()"
    return [
        {
            "rule": f"self.all(k, !format.qualifiedName().validate({cel_key}).hasValue())",
            "message": "keys must be qualified names: [prefix/]name",
        }
    ]


def _object_schema(
    properties: dict[str, Any], *, required: list[str] | None = None, description: str = ""
) -> dict[str, Any]:
    object_schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        object_schema["required"] = required
    return {"description": description, **object_schema} if description else object_schema
