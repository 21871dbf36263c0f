"""The part of the form that all policies share: name and enforcement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.policy import ENFORCEMENT_ANNOTATION, Enforcement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.drafts.forms.sheets import Built, Line, Sheet


def show_metadata(manifest: Mapping[str, Any]) -> Line:
    """The fields of a manifest's metadata."""
    metadata = manifest.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    given = str(annotations.get(ENFORCEMENT_ANNOTATION, Enforcement.ENFORCE))
    return {"name": str(metadata.get("name") or ""), "enforcement": given}


def build_metadata(sheet: Sheet, base: Mapping[str, Any], built: Built) -> None:
    """Put the fields into the manifest; labels and other annotations stay as they are."""
    metadata = dict(base.get("metadata") or {})
    shown = show_metadata(base)
    if sheet.fields.get("name", shown["name"]) != shown["name"]:
        metadata["name"] = sheet.fields["name"]
    mode = sheet.fields.get("enforcement") or shown["enforcement"]
    if mode != shown["enforcement"]:
        annotations = dict(metadata.pop("annotations", None) or {})
        annotations.pop(ENFORCEMENT_ANNOTATION, None)
        if mode != Enforcement.ENFORCE:
            annotations[ENFORCEMENT_ANNOTATION] = mode
        metadata |= {"annotations": annotations} if annotations else {}
    built.manifest["metadata"] = metadata
    built.places["metadata.name"] = "name"
    built.places[f"metadata.annotations[{ENFORCEMENT_ANNOTATION}]"] = "enforcement"


def kept_metadata(manifest: Mapping[str, Any]) -> list[str]:
    """What of the metadata has no field."""
    metadata = manifest.get("metadata") or {}
    annotations = set(metadata.get("annotations") or {}) - {ENFORCEMENT_ANNOTATION}
    named = {"labels": metadata.get("labels"), "annotations": annotations}
    return [name for name, found in named.items() if found]
