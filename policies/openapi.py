"""For OpenAPI documents: Answered serializers, DescribedField for stored JSON, the token's header.

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
from rest_framework.serializers import JSONField

if TYPE_CHECKING:
    from drf_spectacular.openapi import AutoSchema
    from drf_spectacular.utils import Direction
    from rest_framework.serializers import BaseSerializer

    Schema = dict[str, Any]

OBJECT: Final[Schema] = {"type": "object", "additionalProperties": {}}
"""Any JSON object."""
TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
TEXT_MAP: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}


class Answered:
    """Part of a serializer: every answer has all members that it describes, but for a few."""

    optional_in_answers: ClassVar[tuple[str, ...]] = ()
    required_in_bodies: ClassVar[tuple[str, ...]] = ()
    """Members that are checked elsewhere, so that their fields do not require them."""


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
        else:
            required = {*schema.get("required", ()), *answered.required_in_bodies}
        # A merge patch needs nothing.
        if getattr(answered, "partial", False) and direction == "request":
            required = set()
        schema.pop("required", None)
        return {**schema, "required": sorted(required)} if required else schema


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
