"""PlacedError and ValidationErrors from engine FieldErrors: each with its manifest's path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from engine.errors import DecodeError, ErrorType, FieldError
from engine.resource_quota import decode_limited_resources, validate_limited_resources
from policies.object_rules import text_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.policy import LimitedResource

LABEL: Final = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
"""A part of an address; groups there have names, or none."""
CANARY_NAMESPACE: Final = "gatehouse-canary"
"""The namespace of the canaries: the only one in which the portal may create pods."""
MOST_NAMESPACES: Final = 100
"""Names in a webhook's selector; of more, the API server's every request would be slower."""
_NEVER_NAMED: Final = {
    "kube-system": "the webhooks leave it out already, unless the cluster covers it",
    CANARY_NAMESPACE: "the canaries there show that the API server asks the portal",
}
DNS_LABEL: Final = r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"


Place = tuple[str, int | None, str]
"""Related name of the rows (empty: the object itself), index among them, field of the model."""


class PlacedError(ValidationError):
    """One error with its place in the manifest and in the model.

    ``path`` is the manifest's path. ``column`` is the model's field (empty: the whole object),
    ``row_set`` the related name of the rows it belongs to (empty: the object itself) and
    ``index`` the row's index among them (None: all of them).
    """

    def __init__(self, message: str, *, code: str, path: str, place: Place) -> None:
        super().__init__(message, code=code)
        self.path = path
        self.row_set, self.index, self.column = place

    @property
    def key(self) -> str:
        """The field at which the object's own form shows it."""
        return NON_FIELD_ERRORS if self.row_set or not self.column else self.column


def namespace_names_problem(names: Any) -> str:
    """Say what is wrong with a list of different names of namespaces; empty: nothing."""
    if not isinstance(names, list) or len(names) > MOST_NAMESPACES:
        return f"must be a list of at most {MOST_NAMESPACES} names of namespaces"
    for name in names:
        if not isinstance(name, str) or not re.match(DNS_LABEL, name):
            return (
                f'"{name}" is no name of a namespace: write at most 63 lowercase letters, digits '
                "and dashes, with no dash at either end"
            )
        if name in _NEVER_NAMED:
            return f'"{name}" cannot be named: {_NEVER_NAMED[name]}'
        if names.count(name) > 1:
            return f'"{name}" is named twice: name it once'
    return ""


def as_validation_error(findings: Iterable[PlacedError]) -> ValidationError:
    """Join findings into one error keyed by the object's fields."""
    by_key: dict[str, list[ValidationError]] = {}
    for finding in findings:
        by_key.setdefault(finding.key, []).append(finding)
    return ValidationError(by_key)


def findings_of(error: ValidationError) -> list[ValidationError]:
    """The single errors of an error, with their places."""
    if hasattr(error, "error_dict"):
        return [single_error for errors in error.error_dict.values() for single_error in errors]
    return list(error.error_list)


def errors_by_path(error: ValidationError) -> dict[str, list[dict[str, str]]]:
    """Errors keyed by manifest path (or model field), each ``{"code", "message"}``."""
    by_path: dict[str, list[dict[str, str]]] = {}
    fields = error.error_dict if hasattr(error, "error_dict") else {"": error.error_list}
    for field, errors in fields.items():
        for single in errors:
            path = single.path if isinstance(single, PlacedError) else field.strip("_")
            entry = {"code": str(single.code or "invalid"), "message": single.messages[0]}
            by_path.setdefault(path, []).append(entry)
    return by_path


def decode_error_as_field_error(error: DecodeError) -> FieldError:
    """The error of an unreadable object, at the field that could not be read."""
    return FieldError(ErrorType.INVALID, error.field, error.bad_value, error.detail)


def read_limited_resources(entries: Sequence[Any]) -> tuple[LimitedResource, ...]:
    """Decode and check a list of ``limitedResources`` entries; raises ``ValidationError``."""
    try:
        decoded = decode_limited_resources(entries)
        entry_errors = [
            *text_errors({"limitedResources": entries}),
            *validate_limited_resources(decoded),
        ]
    except DecodeError as error:
        entry_errors = [decode_error_as_field_error(error)]
    if entry_errors:
        raise as_validation_error(
            PlacedError(
                error.message,
                code=error.type.cause,
                path=error.field,
                place=("limited_resources", None, ""),
            )
            for error in entry_errors
        )
    return decoded
