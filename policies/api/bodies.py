"""REST bodies parsed, checked (BodyError, 422); errors of services answered with 400, 404, 409.

Only the shape of a body is checked here; the services check it against the rules of its kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import IntegrityError
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.fields import (
    BooleanField,
    CharField,
    ChoiceField,
    DateTimeField,
    Field,
    IntegerField,
)
from rest_framework.relations import SlugRelatedField

from policies.manifests.checks import object_problems, problems_of_policies, shape_problems
from policies.manifests.documents import Document
from policies.manifests.objects import API_VERSIONS, CLUSTER_KINDS, FLEET_KINDS, BundleObject
from policies.manifests.schema import (
    ANYTHING,
    INTEGER,
    KINDS,
    LIMITED_RESOURCES,
    SWITCH,
    TEXT,
    UNKNOWN,
    Shape,
)
from policies.problem_details import problem, problem_of_errors, respond
from policies.rest import CREATE_NAMESPACE, ManifestParser, known_names
from policies.services import StaleRevisionError
from policies.validators import errors_by_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rest_framework.response import Response

    from policies.manifests.documents import Problem


_BODY: Final = "body"
_OWN_SHAPES: Final[dict[str, Shape]] = {
    "limitedResources": LIMITED_RESOURCES,
    "excluded_namespaces": Shape("a list", entries=TEXT),
}
"""Shapes of fields beside manifests."""
_SHAPES_OF_FIELDS: Final[tuple[tuple[type[Field[Any, Any, Any, Any]], Shape], ...]] = (
    (ChoiceField, TEXT),
    (CharField, TEXT),
    (DateTimeField, TEXT),
    (SlugRelatedField, TEXT),
    (BooleanField, SWITCH),
    (IntegerField, INTEGER),
)
"""The library would read 5 as a text, and the text "5" as a number."""
POLICY_KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")


class BodyError(APIException):
    """A body with problems: 422, each with its code, message and hint under the field's path.

    ``within`` is the member of the body that has the documents with the problems.
    """

    status_code = 422

    def __init__(self, problems: Iterable[Problem], *, within: str = "") -> None:
        errors_by_field: dict[str, list[dict[str, Any]]] = {}
        for found in problems:
            hint_in_brackets = f" ({found.hint})" if found.hint else ""
            place = {"line": found.line, "column": found.column} if found.line else {}
            message = f"{found.message}{hint_in_brackets}"
            body_error = {"code": found.code, "message": message, **place}
            field = found.field
            if within:
                document = within + found.source.removeprefix(within)
                field = f"{document}.{field}" if field else document
            errors_by_field.setdefault(field, []).append(body_error)
        super().__init__()
        # Set here, since the framework would turn the numbers of lines into texts.
        self.detail: Any = {"errors": errors_by_field}


def check_body(body: Any, *, kind: str, beside: Mapping[str, Field[Any, Any, Any, Any]]) -> None:
    """Check the fields and types of a body; raises ``BodyError`` with all problems.

    ``kind`` is that of the address, empty if bodies are no manifests; ``beside`` are the API's
    fields beside the manifest's.
    """
    known_fields = {name: _shape_beside(name, field) for name, field in beside.items()}
    if kind:
        known_fields = {**known_fields, **(KINDS[kind].fields or {}), "status": ANYTHING}
    item = BundleObject(body, Document(_BODY, body))
    body_problems = shape_problems(item, Shape("a map", fields=known_fields))
    # ``null`` fits every shape.
    if body is None:
        body_problems = [item.problem("", "must be a map, not null", code="FieldValueTypeInvalid")]
    if not body_problems and kind:
        body_problems = [*_word_problems(item, kind), *_place_problems(item, kind)]
    if not body_problems and kind in FLEET_KINDS:
        body_problems = problems_of_policies(item)
    if body_problems:
        raise BodyError(body_problems)


def _shape_beside(name: str, field: Field[Any, Any, Any, Any]) -> Shape:
    """The shape of one of the API's own fields; what is read only is ignored."""
    if name in _OWN_SHAPES or field.read_only:
        return _OWN_SHAPES.get(name, ANYTHING)
    return next((shape for kind, shape in _SHAPES_OF_FIELDS if isinstance(field, kind)), ANYTHING)


def check_manifests(manifests: Sequence[Any], *, path: str) -> None:
    """Check manifests of policies in a body as if they were stored; raises ``BodyError``."""
    problems: list[Problem] = []
    for index, manifest in enumerate(manifests):
        item = BundleObject(manifest, Document(_BODY, manifest), f"{path}[{index}]")
        if not isinstance(manifest, dict):
            problems.append(item.problem("", "must be a map", code="FieldValueTypeInvalid"))
        elif item.kind not in POLICY_KINDS:
            message = f'Unsupported value: "{item.kind}"; {known_names(item.kind, POLICY_KINDS)}'
            problems.append(item.problem("kind", message, code="FieldValueNotSupported"))
        else:
            problems += [*_word_problems(item, item.kind), *object_problems(item)]
    if problems:
        raise BodyError(problems)


def _word_problems(item: BundleObject, kind: str) -> list[Problem]:
    """``kind`` and ``apiVersion`` may be left out, and are no others."""
    required_words = {"kind": kind, "apiVersion": {**API_VERSIONS, **FLEET_KINDS}[kind]}
    return [
        item.problem(name, f'must be {word} here, not "{said}"', code="FieldValueNotSupported")
        for name, word in required_words.items()
        if (said := item.value.get(name, word)) != word
    ]


def _place_problems(item: BundleObject, kind: str) -> list[Problem]:
    """Objects of a cluster have no namespace."""
    if kind not in {*CLUSTER_KINDS, *FLEET_KINDS} or not item.namespace:
        return []
    return [item.problem("metadata.namespace", f"a {kind} has no namespace", code=UNKNOWN)]


class MergePatchParser(ManifestParser):
    """A JSON merge patch (RFC 7396)."""

    media_type = "application/merge-patch+json"


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396): maps are merged, ``null`` removes, others replace."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


_CONFLICT: Final = status.HTTP_409_CONFLICT
_OVERTAKEN: Final = "somebody else wrote the same at the same time; read it again"
_GONE: Final = "somebody else deleted it at the same time"
_TAKEN_CODES: Final = frozenset({"unique", "unique_together"})
_UNKNOWN_NAMESPACE: Final = "unknown_namespace"
_APPROVAL: Final = "approval_required"
_WAYS_OUT: Final = {_UNKNOWN_NAMESPACE: f" (?{CREATE_NAMESPACE.name}=true)"}


def answer_to(exc: Exception) -> Response | None:
    """The response to an error of services or the database; None for other errors."""
    if isinstance(exc, ValidationError):
        return _refusal_response(exc)
    if isinstance(exc, StaleRevisionError):
        stale = problem(_CONFLICT, str(exc), name="stale-revision", revision=exc.found)
        return respond(stale)
    # Two writers passed the same checks, and the database refused the second.
    if isinstance(exc, IntegrityError):
        return respond(problem(_CONFLICT, _OVERTAKEN))
    if isinstance(exc, ObjectDoesNotExist):
        return respond(problem(status.HTTP_404_NOT_FOUND, _GONE))
    return None


def _refusal_response(error: ValidationError) -> Response:
    """The response to a refusal, with errors by path.

    409 for a used name or where a change is asked for, 422 for an unknown namespace, 400 for
    everything else.
    """
    errors = errors_by_path(error)
    for path_errors in errors.values():
        for entry in path_errors:
            entry["message"] += _WAYS_OUT.get(entry["code"], "")
    error_codes = {entry["code"] for path_errors in errors.values() for entry in path_errors}
    if error_codes & _TAKEN_CODES:
        return respond(problem_of_errors(_CONFLICT, errors, name="already-exists"))
    if _APPROVAL in error_codes:
        return respond(problem_of_errors(_CONFLICT, errors, name="approval-required"))
    if _UNKNOWN_NAMESPACE in error_codes:
        return respond(problem_of_errors(status.HTTP_422_UNPROCESSABLE_ENTITY, errors))
    return respond(problem_of_errors(status.HTTP_400_BAD_REQUEST, errors))
