"""PriorityClass form: fields for value, globalDefault, preemptionPolicy, class metadata."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from engine.wire import RawNumber
from policies.drafts.forms.sheets import Built, Sheet, typed

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS: Final = ("value", "globalDefault", "preemptionPolicy", "description")
_WHOLE_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})", re.ASCII)


def show(class_manifest: Mapping[str, Any]) -> Sheet:
    """The fields of a manifest."""
    class_metadata = class_manifest.get("metadata") or {}
    class_fields = {"name": str(class_metadata.get("name") or "")}
    for name in FIELDS:
        class_value = class_manifest.get(name)
        class_fields[name] = "" if class_value in (None, False) else str(class_value)
    class_fields["globalDefault"] = "on" if class_manifest.get("globalDefault") else ""
    return Sheet(class_fields)


def build(sheet: Sheet, base: Mapping[str, Any]) -> Built:
    """The manifest of the fields; labels and annotations stay as they are."""
    built = Built(dict(base), places={"metadata.name": "name", **{name: name for name in FIELDS}})
    class_fields = show(base).fields
    if sheet.fields.get("name", "") != typed(class_fields["name"]):
        built.manifest["metadata"] = {**(base.get("metadata") or {}), "name": sheet.fields["name"]}
    for field in FIELDS:
        text = sheet.fields.get(field, "")
        if text != typed(class_fields[field]):
            built.manifest.pop(field, None)
            # A value that is no number stays text, so that the rules report it.
            is_number = field == "value" and _WHOLE_NUMBER.fullmatch(text)
            value = True if field == "globalDefault" else RawNumber(text) if is_number else text
            built.manifest |= {field: value} if text else {}
    return built
