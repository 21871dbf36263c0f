"""Setting labels and annotations: who asks for what, and the patch that does it.

Source: RFC 6902 (patch) and RFC 6901 (pointers); conflicts as in the semantics reference, 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policies.engine.patch import PatchBuilder, PatchOperation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.engine.policy import PolicyAction

_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Update:
    """What one rule asks to be set, and how a warning names that rule."""

    rule: str
    action: PolicyAction


def collect_updates(
    updates: list[Update],
) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Merge in order: labels, annotations, and a warning for each key set to two values."""
    labels, label_warnings = _merge("label", [(u.rule, u.action.updated_labels) for u in updates])
    annotations, annotation_warnings = _merge(
        "annotation", [(u.rule, u.action.updated_annotations) for u in updates]
    )
    return labels, annotations, (*label_warnings, *annotation_warnings)


def _merge(
    what: str, asked: list[tuple[str, Mapping[str, str]]]
) -> tuple[dict[str, str], list[str]]:
    values: dict[str, str] = {}
    owners: dict[str, str] = {}
    warnings: list[str] = []
    for rule, wanted in asked:
        for key, value in wanted.items():
            if values.get(key, value) != value:
                warnings.append(
                    f"{rule} overrides {owners[key].removeprefix('MetadataPolicy ')}: {what} {key}"
                )
            values[key], owners[key] = value, rule
    return values, warnings


def set_metadata(
    obj: Mapping[str, Any], wanted: Mapping[str, Mapping[str, str]]
) -> tuple[Mapping[str, Any], tuple[PatchOperation, ...]]:
    """Set keys of ``metadata.labels`` and ``metadata.annotations`` on a copy of what changes.

    What holds already is left alone; the object itself comes back where nothing changes.
    """
    metadata = obj.get("metadata") or {}
    changes = [
        (field, key, value)
        for field, values in wanted.items()
        for key, value in sorted(values.items())
        if (metadata.get(field) or _NOTHING).get(key) != value
    ]
    if not changes:
        return obj, ()
    builder = PatchBuilder(obj)
    for field, key, value in changes:
        builder.set(("metadata", field, key), value)
    return builder.object, tuple(builder.operations)
