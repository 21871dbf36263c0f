"""Parse bodies of the REST API as manifests, numbers as text, with hints for unknown fields.

The rules of a kind are the services' to ask, once the shape is right.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

from engine.errors import DecodeError
from engine.wire import loads
from policies.manifests.checks import shape_problems
from policies.manifests.objects import API_VERSIONS, BundleObject
from policies.manifests.schema import ANYTHING, KINDS, LIMITED_RESOURCES, Shape
from policies.manifests.yaml.documents import Document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policies.manifests.problems import Problem

_BODY: Final = "body"
_OWN: Final[dict[str, Shape]] = {"limitedResources": LIMITED_RESOURCES}
"""Shapes of what stands beside manifests, where it has one."""


class BodyError(APIException):
    """A body with problems: 422, each with its code, message and hint under the field's path."""

    status_code = 422

    def __init__(self, problems: Iterable[Problem]) -> None:
        errors: dict[str, list[dict[str, str]]] = {}
        for problem in problems:
            hint = f" ({problem.hint})" if problem.hint else ""
            entry = {"code": problem.code, "message": f"{problem.message}{hint}"}
            errors.setdefault(problem.field, []).append(entry)
        super().__init__({"errors": errors})


def check_body(body: Any, *, kind: str, beside: Iterable[str]) -> None:
    """Look for fields and types that nobody knows; raises ``BodyError`` with all of them.

    ``kind`` is that of the address, empty where bodies are no manifests; ``beside`` names the
    fields that the API has beside the manifest's.
    """
    known = {name: _OWN.get(name, ANYTHING) for name in beside}
    if kind:
        known = {**known, **(KINDS[kind].fields or {}), "status": ANYTHING}
    item = BundleObject(body, Document(_BODY, body))
    problems = shape_problems(item, Shape("a map", fields=known))
    if body is None:
        problems = [item.problem("", "must be a map, not null", code="FieldValueTypeInvalid")]
    if not problems and kind:
        problems = _other_kind(item, kind)
    if problems:
        raise BodyError(problems)


def _other_kind(item: BundleObject, kind: str) -> list[Problem]:
    """Find a body that says it is something else than its address is for."""
    wanted = {"kind": kind, "apiVersion": API_VERSIONS[kind]}
    return [
        item.problem(name, f'must be {word} here, not "{said}"', code="FieldValueNotSupported")
        for name, word in wanted.items()
        if (said := item.value.get(name)) not in (None, "", word)
    ]


class ManifestParser(JSONParser):
    """JSON with exact numbers; duplicate keys are refused."""

    def parse(
        self,
        stream: IO[Any],
        _media_type: str | None = None,
        _parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Decode the body; raises ``ParseError``."""
        try:
            return loads(stream.read())
        except DecodeError as error:
            raise ParseError(error.detail) from error
