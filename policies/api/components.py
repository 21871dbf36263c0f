"""OpenAPI components of manifests, from the shapes by which bodies are checked.

Fields and types come from ``policies.manifests.schema``; beside each shape stands here only what
it does not know: which members are required, and which words a text may be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.plumbing import ResolvedComponent
from rest_framework.serializers import DictField, ListField

from engine.kept_tests import ALLOW, DENY, OPERATIONS, REASONS
from engine.limit_range import ITEM_TYPES
from engine.namespace_class import OnLeave, ParameterType
from engine.resource_quota import ALLOWED_NAMES
from policies.api.bodies import POLICY_KINDS
from policies.manifests.checks import NEW_AND_OLD_NAMES
from policies.manifests.objects import API_VERSIONS, FLEET_KINDS
from policies.manifests.schema import (
    ANYTHING,
    INTEGER,
    KINDS,
    LIMITED_RESOURCES,
    QUANTITY,
    QUANTITY_OR_TEXT,
    SCOPE_EXPRESSIONS,
    SELECTOR,
    SWITCH,
    TEXT,
    Shape,
)
from policies.object_rules import PREEMPTION_POLICIES
from policies.openapi import (
    OBJECT,
    TEXT_MAP,
    Answered,
    AnsweredExtension,
    is_patch,
    or_null,
    removable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drf_spectacular.openapi import AutoSchema
    from drf_spectacular.plumbing import ComponentRegistry
    from drf_spectacular.utils import Direction

    Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A map with known fields: which of them bodies need, and which every answer has."""

    shape: Shape
    description: str
    required: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    choices: Mapping[str, Schema] = field(default_factory=dict)
    nullable: tuple[str, ...] = ()
    """Members that are stored as they were given, so that an answer may have null there."""


def _fields(shape: Shape | None) -> Mapping[str, Shape]:
    return (shape.fields if shape else None) or {}


def _entry(shape: Shape) -> Shape:
    return shape.entries or ANYTHING


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _enum(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


_OPERATOR: Final = _enum("In", "NotIn", "Exists", "DoesNotExist")
_SCOPE: Final = _enum(*ALLOWED_NAMES)
# Kubernetes takes any qualified name, too: a type of somebody else's objects.
_ITEM_TYPE: Final = {"anyOf": [_enum(*sorted(ITEM_TYPES)), {"type": "string", "pattern": "/"}]}
_SPECS: Final = {kind: _fields(shape).get("spec", ANYTHING) for kind, shape in KINDS.items()}
_RULE: Final = _entry(_fields(_SPECS["MetadataPolicy"])["rules"])
_TESTED: Final = {**OBJECT, "required": ["kind"]}
COMPONENTS: Final[Mapping[str, Component]] = {
    "LimitRangeSpec": Component(
        shape=_SPECS["LimitRange"],
        description="Minimum, maximum and default amounts.",
        answered=("limits",),
    ),
    "LimitRangeItem": Component(
        shape=_entry(_fields(_SPECS["LimitRange"])["limits"]),
        description="The amounts of one type of objects.",
        required=("type",),
        answered=("type",),
        choices={"type": _ITEM_TYPE},
    ),
    "ResourceQuotaSpec": Component(
        shape=_SPECS["ResourceQuota"],
        description="The most that the selected objects of a namespace may use together.",
        choices={"scopes": _array(_SCOPE)},
    ),
    "ScopeSelector": Component(
        shape=_fields(_SPECS["ResourceQuota"])["scopeSelector"],
        description="Selects the objects for which all expressions hold.",
    ),
    "ScopeExpression": Component(
        shape=_entry(SCOPE_EXPRESSIONS),
        description="A scope of objects, with values where the operator takes some.",
        required=("scopeName", "operator"),
        answered=("scopeName", "operator"),
        choices={"scopeName": _SCOPE, "operator": _OPERATOR},
    ),
    "MetadataPolicySpec": Component(
        shape=_SPECS["MetadataPolicy"],
        description="Rules over labels and annotations.",
        answered=("rules",),
    ),
    "MetadataPolicyRule": Component(
        shape=_RULE,
        description="What is done to objects for which the predicate holds.",
        required=("policyAction",),
        answered=("policyPredicate", "policyAction"),
    ),
    "PolicyPredicate": Component(
        shape=_fields(_RULE)["policyPredicate"],
        description="Both selectors must hold; an absent one always holds.",
    ),
    "PolicyAction": Component(
        shape=_fields(_RULE)["policyAction"],
        description="Refuses an object, or sets labels and annotations of it.",
        answered=("reject",),
    ),
    "LabelSelector": Component(
        shape=SELECTOR,
        description="Holds if all labels and expressions match; an empty one matches everything.",
        nullable=("matchLabels", "matchExpressions"),
    ),
    "LabelSelectorExpression": Component(
        shape=_entry(_fields(SELECTOR)["matchExpressions"]),
        description="A test of one label or annotation.",
        required=("key", "operator"),
        answered=("key", "operator"),
        choices={"operator": _OPERATOR},
        nullable=("values",),
    ),
    "PolicyTestSpec": Component(
        shape=_SPECS["PolicyTest"],
        description="An object, and the answer that the policies of its namespace should give.",
        required=("object", "expect"),
        answered=("object", "expect", "operation"),
        choices={
            "operation": _enum(*OPERATIONS),
            "object": _TESTED,
            "oldObject": _TESTED,
        },
    ),
    "ExpectedAnswer": Component(
        shape=_fields(_SPECS["PolicyTest"])["expect"],
        description="The verdict; all reasons of a denial, and the whole change, where they are"
        " given.",
        required=("verdict",),
        answered=("verdict",),
        choices={
            "verdict": _enum(ALLOW, DENY),
            "reasons": _array(_enum(*REASONS)),
            "patch": _array({**OBJECT}),
        },
    ),
    "NamespaceClassSpec": Component(
        shape=_SPECS["NamespaceClass"],
        description="What namespaces get: which namespaces, parameters and policies.",
        answered=("selector", "policies"),
        choices={"onLeave": _enum(*OnLeave), "policies": _array({**OBJECT})},
    ),
    "NamespaceSelector": Component(
        shape=_fields(_SPECS["NamespaceClass"])["selector"],
        description="Matches namespaces by name patterns and labels; an empty one matches all.",
        nullable=("matchLabels", "matchExpressions"),
    ),
    "ClassParameter": Component(
        shape=_entry(_fields(_SPECS["NamespaceClass"])["parameters"]),
        description="A named value that a namespace may set by an annotation.",
        required=("name",),
        answered=("name", "type", "default"),
        choices={"type": _enum(*ParameterType)},
    ),
    "LimitedResource": Component(
        shape=_entry(LIMITED_RESOURCES),
        description="A resource that may be used only where a quota covers it.",
        required=("resource",),
        answered=("resource",),
    ),
}
OLD_NAMES: Final = frozenset(old for _, old in NEW_AND_OLD_NAMES)
"""Names of old manifests, which are read and neither written nor described."""
_WORDS_OF_KIND: Final[Mapping[str, Mapping[str, Schema]]] = {
    "PriorityClass": {"preemptionPolicy": _enum(*sorted(PREEMPTION_POLICIES))}
}
_AMOUNT: Final[Schema] = {"type": "string", "nullable": True}  # null counts as zero
AMOUNTS: Final[Schema] = {"type": "object", "additionalProperties": _AMOUNT}
"""Quantities by resource, as answers have them."""
_SIMPLE: Final[Mapping[str, Schema]] = {
    ANYTHING.word: {},
    TEXT.word: {"type": "string"},
    QUANTITY_OR_TEXT.word: {"type": "string"},
    SWITCH.word: {"type": "boolean"},
    INTEGER.word: {"type": "integer"},
}


def schema_of(
    shape: Shape, *, registry: ComponentRegistry, direction: Direction, patch: bool = False
) -> Schema:
    """The schema of a shape; a map with fields is a reference to its component.

    ``patch``: it is merged into an object, of which lists are replaced as a whole.
    """
    if shape.fields is not None:
        return _registered(shape, registry=registry, direction=direction, patch=patch).ref
    if inner := shape.entries or shape.values:
        # Texts are kept as they were given: null, too, which Kubernetes reads as the empty one.
        is_text, text = inner is TEXT, {"type": "string", "nullable": True}
        schema = text if is_text else schema_of(inner, registry=registry, direction=direction)
        is_list = shape.entries is not None
        return _array(schema) if is_list else {"type": "object", "additionalProperties": schema}
    if shape is QUANTITY:
        # Numbers are read, too; answers have texts, which alone are exact.
        is_body = direction == "request"
        return {"oneOf": [_AMOUNT, {"type": "number"}]} if is_body else dict(_AMOUNT)
    return dict(_SIMPLE[shape.word])


def _registered(
    shape: Shape, *, registry: ComponentRegistry, direction: Direction, patch: bool
) -> ResolvedComponent:
    """The component of a map with fields: one for bodies, one for patches, one for answers."""
    name, known = next((name, each) for name, each in COMPONENTS.items() if each.shape is shape)
    is_body = direction == "request"
    name = f"{'Patched' if patch else ''}{name}Request" if is_body else name
    required = () if patch else known.required if is_body else known.answered
    # Kubernetes reads null like an absent member, and so do bodies.
    members = [member for member in _fields(shape) if member not in OLD_NAMES]
    nullable = set(members) - set(known.required) if is_body else known.nullable
    properties: dict[str, Schema] = {}
    for member in members:
        schema = schema_of(
            _fields(shape)[member], registry=registry, direction=direction, patch=patch
        )
        schema = known.choices.get(member, schema)
        properties[member] = or_null(schema) if member in nullable else schema
    component = ResolvedComponent(  # type: ignore[no-untyped-call]  # no types
        name,
        ResolvedComponent.SCHEMA,
        schema={
            "type": "object",
            "description": known.description,
            "properties": properties,
            **({"required": sorted(required)} if required else {}),
            **({"additionalProperties": False} if is_body else {}),
        },
        object=name,
    )
    registry.register_on_missing(component)
    return component


class LimitedResourcesField(ListField):
    """``limitedResources`` of a cluster."""


class LimitedResourcesExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # no types
    """Describes the entries by their shape."""

    target_class = LimitedResourcesField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> Schema:
        """A list of references to the component of an entry."""
        registry = auto_schema.registry
        return schema_of(LIMITED_RESOURCES, registry=registry, direction=direction)


class ManifestField(DictField):
    """The manifest of a policy of any kind."""


class ManifestFieldExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # no types
    """Describes one component for each kind, told apart by ``kind``."""

    target_class = ManifestField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> Schema:
        """The components of all kinds."""
        references = {
            kind: _manifest(kind, auto_schema.registry, direction).ref for kind in POLICY_KINDS
        }
        mapping = {kind: reference["$ref"] for kind, reference in references.items()}
        return {
            "oneOf": list(references.values()),
            "discriminator": {"propertyName": "kind", "mapping": mapping},
        }


def _manifest(kind: str, registry: ComponentRegistry, direction: Direction) -> ResolvedComponent:
    """The component of a manifest as Kubernetes writes it."""
    is_body = direction == "request"
    name = f"{kind}ManifestRequest" if is_body else f"{kind}Manifest"
    text: Schema = {"type": "string"}
    members = {"name": text, "namespace": text, "labels": TEXT_MAP, "annotations": TEXT_MAP}
    component = ResolvedComponent(  # type: ignore[no-untyped-call]  # no types
        name,
        ResolvedComponent.SCHEMA,
        schema={
            "type": "object",
            "description": f"A {kind} as Kubernetes writes it.",
            "properties": {
                "apiVersion": _enum(API_VERSIONS[kind]),
                "kind": _enum(kind),
                "metadata": {"type": "object", "properties": members, "required": ["name"]},
                "spec": schema_of(_SPECS[kind], registry=registry, direction=direction),
            },
            "required": sorted({"kind", "metadata", "spec", *(() if is_body else ("apiVersion",))}),
        },
        object=name,
    )
    registry.register_on_missing(component)
    return component


class Manifest(Answered):
    """Part of a serializer whose bodies are manifests of one kind."""

    kind_of_manifest: ClassVar[str]
    undeclared_members: ClassVar = ("apiVersion", "kind")
    """Members of answers beside the serializer's fields, for ``?fields=``."""


class ManifestExtension(AnsweredExtension):  # type: ignore[no-untyped-call]  # no types
    """Describes the fields of a manifest by the shapes of its kind."""

    target_class = Manifest
    match_subclasses = True
    priority = 1

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> Schema:
        """The serializer's schema, with the fields that its kind knows."""
        kind: str = self.target.kind_of_manifest
        schema = super().map_serializer(auto_schema, direction)
        members = schema["properties"]
        patch = is_patch(auto_schema, direction)
        for name, shape in _fields(KINDS[kind]).items():
            if name in members and name != "metadata" and shape is not ANYTHING:
                typed = schema_of(
                    shape, registry=auto_schema.registry, direction=direction, patch=patch
                )
                typed = _WORDS_OF_KIND.get(kind, {}).get(name, typed)
                is_removable = patch and not self.target.fields[name].required
                members[name] = removable(typed) if is_removable else typed
        version = {**API_VERSIONS, **FLEET_KINDS}[kind]
        words = {"apiVersion": _enum(version), "kind": _enum(kind)}
        if direction == "request":
            return {**schema, "properties": {**words, **members}}
        required = sorted({*schema["required"], *words})
        return {**schema, "properties": {**words, **members}, "required": required}
