"""PlacedError and ValidationErrors from engine FieldErrors; metadata, priority, unstorable texts.

The only rules here are those of PriorityClasses and storable texts, which the engine never reads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from engine.errors import DecodeError, ErrorType, FieldError, FieldPath
from engine.names import annotations_errors, dns1123_subdomain_errors, labels_errors
from engine.resource_quota import decode_limited_resources, validate_limited_resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.policy import LimitedResource

DNS_LABEL: Final = r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"
HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


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


def text_errors(manifest: object) -> list[FieldError]:
    """Find strings that no database stores: NUL and lone surrogates."""
    unstorable: list[FieldError] = []
    # A stack and no recursion: bodies may nest deeper than Python's.
    unchecked_values: list[tuple[str, object]] = [("", manifest)]
    while unchecked_values:
        path, value = unchecked_values.pop()
        if isinstance(value, dict):
            unchecked_values += [(f"{path}.{key}".lstrip("."), part) for key, part in value.items()]
            unchecked_values += [(path, key) for key in value]
        elif isinstance(value, list):
            unchecked_values += [(f"{path}[{i}]", part) for i, part in enumerate(value)]
        elif isinstance(value, str) and _UNSTORABLE.search(value):
            unstorable_text = "must not contain NUL or a lone surrogate"
            unstorable.append(FieldError(ErrorType.INVALID, path, ascii(value), unstorable_text))
    return unstorable


def metadata_errors(metadata: Mapping[str, Any]) -> list[FieldError]:
    """Check labels and annotations as Kubernetes does."""
    path = FieldPath("metadata")
    map_errors: list[FieldError] = []
    for name, check in (("labels", labels_errors), ("annotations", annotations_errors)):
        metadata_map = metadata.get(name) or {}
        # By exact type: a number that kept its text is a subclass of str.
        is_string_map = isinstance(metadata_map, dict) and all(
            type(each) is str for entry in metadata_map.items() for each in entry
        )
        if not is_string_map:
            detail = "must be a map of strings to strings"
            map_errors.append(FieldError(ErrorType.INVALID, f"metadata.{name}", None, detail))
        else:
            map_errors += check(metadata_map, path.child(name))
    return map_errors


def priority_class_errors(
    *, name: str, value: int, preemption_policy: str, global_default: bool
) -> list[FieldError]:
    """Check a PriorityClass as Kubernetes does (``pkg/apis/scheduling/validation``)."""
    class_errors = [
        FieldError(ErrorType.INVALID, "metadata.name", name, text)
        for text in dns1123_subdomain_errors(name)
    ]
    # Kubernetes reserves the prefix for its two built-in classes.
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != value or global_default:
            detail = "priority class names with 'system-' prefix are reserved for system use only."
            class_errors.append(FieldError(ErrorType.FORBIDDEN, "metadata.name", name, detail))
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        class_errors.append(FieldError(ErrorType.FORBIDDEN, "value", value, detail))
    if preemption_policy and preemption_policy not in PREEMPTION_POLICIES:
        detail = 'supported values: "Never", "PreemptLowerPriority"'
        class_errors.append(
            FieldError(ErrorType.NOT_SUPPORTED, "preemptionPolicy", preemption_policy, detail)
        )
    return class_errors


def read_limited_resources(entries: Sequence[Any]) -> tuple[LimitedResource, ...]:
    """Decode and check a list of ``limitedResources`` entries; raises ``ValidationError``."""
    try:
        decoded = decode_limited_resources(entries)
        entry_errors = list(validate_limited_resources(decoded))
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
