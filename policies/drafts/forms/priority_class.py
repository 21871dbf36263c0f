"""PriorityClass form: cells for value, globalDefault, preemptionPolicy, description."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from engine.wire import RawNumber
from policies.drafts.forms.sheets import Built, Sheet, typed

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS: Final = ("value", "globalDefault", "preemptionPolicy", "description")
_WHOLE_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})", re.ASCII)


def show(manifest: Mapping[str, Any]) -> Sheet:
    """The fields of a manifest."""
    metadata = manifest.get("metadata") or {}
    fields = {"name": str(metadata.get("name") or "")}
    for name in FIELDS:
        value = manifest.get(name)
        fields[name] = "" if value in (None, False) else str(value)
    fields["globalDefault"] = "on" if manifest.get("globalDefault") else ""
    return Sheet(fields)


def build(sheet: Sheet, base: Mapping[str, Any]) -> Built:
    """The manifest of the fields; labels and annotations stay as they are."""
    built = Built(dict(base), places={"metadata.name": "name", **{name: name for name in FIELDS}})
    shown = show(base).fields
    if sheet.fields.get("name", "") != typed(shown["name"]):
        built.manifest["metadata"] = {**(base.get("metadata") or {}), "name": sheet.fields["name"]}
    for field in FIELDS:
        text = sheet.fields.get(field, "")
        if text != typed(shown[field]):
            built.manifest.pop(field, None)
            # A value that is no number stays text, so that the rules report it.
            is_number = field == "value" and _WHOLE_NUMBER.fullmatch(text)
            value = True if field == "globalDefault" else RawNumber(text) if is_number else text
            built.manifest |= {field: value} if text else {}
    return built
