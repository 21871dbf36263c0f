"""OpenAPI components of manifests, from the shapes by which bodies are checked.

Fields and types come from ``policies.manifests.schema``; beside each shape stands here only what
it does not know: which members are required, and which words a text may be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.plumbing import ResolvedComponent
from rest_framework.serializers import ListField

from engine.limit_range import ITEM_TYPES
from engine.resource_quota import ALLOWED_NAMES
from policies.manifests.checks import NEW_AND_OLD_NAMES
from policies.manifests.objects import API_VERSIONS
from policies.manifests.schema import (
    ANYTHING,
    INTEGER,
    KINDS,
    LIMITED_RESOURCES,
    QUANTITY,
    SCOPE_EXPRESSIONS,
    SELECTOR,
    SWITCH,
    TEXT,
    Shape,
)
from policies.object_rules import PREEMPTION_POLICIES
from policies.openapi import Answered, AnsweredExtension

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
    SWITCH.word: {"type": "boolean"},
    INTEGER.word: {"type": "integer"},
}


def schema_of(shape: Shape, *, registry: ComponentRegistry, direction: Direction) -> Schema:
    """The schema of a shape; a map with fields is a reference to its component."""
    if shape.fields is not None:
        return _registered(shape, registry=registry, direction=direction).ref
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
    shape: Shape, *, registry: ComponentRegistry, direction: Direction
) -> ResolvedComponent:
    """The component of a map with fields, in the document once for bodies and once for answers."""
    name, known = next((name, each) for name, each in COMPONENTS.items() if each.shape is shape)
    name = f"{name}Request" if direction == "request" else name
    properties: dict[str, Schema] = {}
    for member, member_shape in _fields(shape).items():
        if member not in OLD_NAMES:
            schema = schema_of(member_shape, registry=registry, direction=direction)
            properties[member] = known.choices.get(member, schema)
            if member in known.nullable:
                properties[member] = {**properties[member], "nullable": True}
    required = known.required if direction == "request" else known.answered
    component = ResolvedComponent(  # type: ignore[no-untyped-call]  # no types
        name,
        ResolvedComponent.SCHEMA,
        schema={
            "type": "object",
            "description": known.description,
            "properties": properties,
            **({"required": sorted(required)} if required else {}),
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


class Manifest(Answered):
    """Part of a serializer whose bodies are manifests of one kind."""

    kind_of_manifest: ClassVar[str]
    has_kind_in_answers: ClassVar = True
    """Whether answers have ``apiVersion`` and ``kind``, as bodies may."""

    @property
    def undeclared_members(self) -> tuple[str, ...]:
        """Members of answers beside the serializer's fields, for ``?fields=``."""
        return ("apiVersion", "kind") if self.has_kind_in_answers else ()


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
        for name, shape in _fields(KINDS[kind]).items():
            if name in members and name != "metadata" and shape is not ANYTHING:
                typed = schema_of(shape, registry=auto_schema.registry, direction=direction)
                members[name] = _WORDS_OF_KIND.get(kind, {}).get(name, typed)
        words = {"apiVersion": _enum(API_VERSIONS[kind]), "kind": _enum(kind)}
        if direction == "request":
            return {**schema, "properties": {**words, **members}}
        if self.target.has_kind_in_answers:
            required = sorted({*schema["required"], *words})
            return {**schema, "properties": {**words, **members}, "required": required}
        return schema
