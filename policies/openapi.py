"""For OpenAPI documents: Answered serializers, DescribedField, summaries, the token's header.

Serializers of stored objects read bodies, and their answers are written by hand; what is here only
describes the two in the OpenAPI document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.plumbing import build_bearer_security_scheme_object
from rest_framework import serializers
from rest_framework.serializers import JSONField

from engine.decision import Outcome, Reason

if TYPE_CHECKING:
    from drf_spectacular.openapi import AutoSchema
    from drf_spectacular.utils import Direction
    from rest_framework.serializers import BaseSerializer

    Schema = dict[str, Any]

OUTCOMES: Final = [outcome.value for outcome in Outcome]
"""The results of the steps of a decision."""
OBJECT: Final[Schema] = {"type": "object", "additionalProperties": {}}
"""Any JSON object."""
TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
TEXT_MAP: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}


class Answered:
    """Part of a serializer: every answer has all members that it describes, but for a few."""

    optional_in_answers: ClassVar[tuple[str, ...]] = ()
    required_in_bodies: ClassVar[tuple[str, ...]] = ()
    """Members that are checked elsewhere, so that their fields do not require them."""
    only_in_replacements: ClassVar[tuple[str, ...]] = ()
    """Members of bodies that replace or change an object, and not of those that create one."""
    has_replacements: ClassVar[bool] = False
    """Whether bodies that create need other members than bodies that replace."""


def is_patch(auto_schema: AutoSchema, direction: Direction) -> bool:
    """Whether a merge patch is described: it needs no member, and null removes one."""
    return direction == "request" and auto_schema.method == "PATCH"


def or_null(schema: Schema) -> Schema:
    """A schema that has null, too."""
    if "$ref" in schema:
        return {"allOf": [schema], "nullable": True}
    words = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, **words, "nullable": True} if schema else schema


def removable(schema: Schema) -> Schema:
    """The schema of what a merge patch removes by null; so it does entries of a map."""
    entries = schema.get("additionalProperties")
    removable_entries = {"additionalProperties": or_null(entries)} if entries else {}
    return or_null({**schema, **removable_entries})


class AnsweredExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]  # no types
    """Marks as required what every answer has, and what a body needs."""

    target_class = Answered
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> Schema:
        """The library's schema with other ``required`` members."""
        answered: Any = self.target
        # The library maps this class; on ours it is the part that all of them share.
        self.target_class = type(answered)
        schema: Schema = super().map_serializer(auto_schema, direction)
        if direction == "response":
            required = set(schema["properties"]) - {*answered.optional_in_answers}
            return {**schema, "required": sorted(required)}
        return _body(schema, answered, auto_schema.method)


def _body(schema: Schema, answered: Any, method: str) -> Schema:
    """The schema of a body: it says what its method needs, and that nothing else is known."""
    members = dict(schema["properties"])
    required = {name for name, field in answered.fields.items() if field.required}
    required &= set(members)
    if method == "POST":
        required |= {*answered.required_in_bodies}
        members = {
            name: member
            for name, member in members.items()
            if name not in answered.only_in_replacements
        }
    if method == "PATCH":
        members = {
            name: member if name in required else removable(member)
            for name, member in members.items()
        }
        required = set()
    whole = {**schema, "properties": members, "additionalProperties": False}
    whole.pop("required", None)
    return {**whole, "required": sorted(required)} if required else whole


class PolicyNameSerializer(serializers.Serializer[Any]):
    """The kind and name of a policy."""

    kind = serializers.CharField()
    name = serializers.CharField()


class FoundViolationSerializer(serializers.Serializer[Any]):
    """A rule that an object breaks, as it was just found."""

    reason = serializers.ChoiceField([reason.value for reason in Reason])
    field = serializers.CharField(help_text="a path into the judged object")
    message = serializers.CharField()
    policy = PolicyNameSerializer(allow_null=True)
    rule = serializers.IntegerField(allow_null=True, help_text="its place in the policy")


class PatchOperationSerializer(Answered, serializers.Serializer[Any]):
    """One operation of a JSON Patch (RFC 6902)."""

    optional_in_answers = ("value",)

    op = serializers.ChoiceField(["add", "replace", "remove"])
    path = serializers.CharField(help_text="a JSON pointer")
    value = serializers.JSONField()


class DescribedField(JSONField):
    """JSON as it is stored, described by a schema, or by a serializer that nothing else uses."""

    def __init__(self, members: BaseSerializer[Any] | Schema, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.members = members


class DescribedExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # no types
    """Shows the members of a ``DescribedField``."""

    target_class = DescribedField

    def map_serializer_field(  # type: ignore[override]  # the library leaves out what has none
        self, auto_schema: AutoSchema, direction: Direction
    ) -> Schema | None:
        """The schema itself, or a reference to the serializer's component."""
        if direction == "request" and self.target.read_only:
            return None
        members: Any = self.target.members
        if isinstance(members, dict):
            return dict(members)
        component = auto_schema.resolve_serializer(getattr(members, "child", members), direction)
        reference: Schema = component.ref
        return {"type": "array", "items": reference} if hasattr(members, "child") else reference


def add_summaries(result: Schema, **_: object) -> Schema:
    """Give each operation a summary, which pages show beside its path: its first sentence."""
    for path in result["paths"].values():
        for operation in path.values():
            if "description" in operation:
                first = operation["description"].split("\n", 1)[0].split(". ", 1)[0]
                operation["summary"] = first.replace("``", "").removesuffix(".")
    return result


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # no types
    """Describes the header, as the library does for the class of knox alone."""

    target_class = "policies.tokens.authentication.ScopedTokenAuthentication"
    name = "knoxApiToken"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """A header with a prefix."""
        del auto_schema
        definition: Schema = build_bearer_security_scheme_object(
            header_name="Authorization", token_prefix=self.target.authenticate_header("")
        )
        return definition
