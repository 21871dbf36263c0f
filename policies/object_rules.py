"""FieldErrors of metadata, PriorityClasses and unstorable texts; a manifest in another mode.

Plain Python: the models and the command line check by the same rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from engine.errors import ErrorType, FieldError, FieldPath
from engine.names import annotations_errors, dns1123_subdomain_errors, labels_errors
from engine.policy import ENFORCEMENT_ANNOTATION, Enforcement, encode_enforcement

if TYPE_CHECKING:
    from collections.abc import Mapping

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
MODES: Final = [mode.value for mode in Enforcement]
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


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


def with_enforcement(manifest: Mapping[str, Any], mode: Enforcement) -> dict[str, Any]:
    """A manifest as before, in another mode of enforcement."""
    metadata = dict(manifest["metadata"])
    annotations = dict(metadata.pop("annotations", None) or {})
    annotations.pop(ENFORCEMENT_ANNOTATION, None)
    annotations |= encode_enforcement(mode)
    if annotations:
        metadata["annotations"] = annotations
    return {**manifest, "metadata": metadata}
