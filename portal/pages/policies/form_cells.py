"""FormRows and FormCells of the editor's form, for templates: values, derived, errors, choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.resource_quota import unknown_names
from engine.resource_quota.scopes import ALLOWED_NAMES
from policies.drafts.forms import limit_range, namespace_class
from policies.drafts.forms import quota as forms_quota
from policies.drafts.forms.quota_matrix import matrix_of
from policies.drafts.forms.sheets import OPERATORS
from policies.ledger.usage import UNKNOWN
from policies.manifests import sentences
from policies.models import PriorityClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.policy import PolicySet
    from policies.drafts.draft import Draft, PolicyPlace
    from policies.drafts.forms.sheets import Sheet
    from policies.drafts.kinds import EditableKind

CONTAINER_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
MODES: Final = {
    "audit": "Records violations and lets the request through",
    "warn": "Warns the caller of violations and lets the request through",
    "enforce": "Refuses requests with violations",
}
API_SERVER_MODES: Final = {
    "off": "off: only the portal enforces",
    "audit": "audit: record violations there",
    "enforce": "enforce: refuse violations there",
}
READY_WORDS: Final = {
    "require": "Require a label",
    "forbid": "Forbid a label",
    "default": "Set a label that is missing",
    "allow-list": "Allow a label only some values",
    "scheduler": "Choose a scheduler by QoS class",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormCell:
    """One cell: its name, text, placeholder and problems."""

    name: str
    value: str = ""
    derived: str = ""
    errors: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRow:
    """One line; ``kept`` names the part of the YAML without a form; the lists are nested lines."""

    group: str
    number: int
    cells: dict[str, FormCell]
    kept: str = ""
    is_kept: bool = False
    used: str = ""
    conditions: list[FormRow] = field(default_factory=list)
    updates: list[FormRow] = field(default_factory=list)
    scopes: list[FormRow] = field(default_factory=list)

    def __getitem__(self, column: str) -> FormCell:
        """The cell of a column."""
        return self.cells[column]


FORM_COLUMNS: Final = {
    limit_range.ROW: ("item", "type", "resource", *limit_range.AMOUNTS),
    forms_quota.HARD: ("resource", "amount"),
    forms_quota.SCOPE: ("entry", "scopeName", "operator", "values"),
    sentences.RULE: ("does", "every"),
    sentences.IF: ("rule", "on", "key", "is", "values"),
    sentences.THEN: ("rule", "on", "key", "value"),
    "entry": ("resource", "apiGroup", "contains"),
    namespace_class.PARAMETER: ("name", "type", "default", "description"),
    namespace_class.POLICY: ("at", "kind", "name"),
}


def form_context(place: PolicyPlace, draft: Draft, before: PolicySet | None) -> dict[str, Any]:
    """The context of the form's template; no form where the YAML cannot be shown as one."""
    sheet = draft.sheet
    if sheet is None:
        return {"form": None}
    derived = limit_range.derived(sheet) if place.kind.name == "LimitRange" else {}
    used = _used_amounts(place, before)
    rows = {group: rows_of(group, draft, {**derived, **used}) for group in place.kind.groups}
    for form_row in rows.get(sentences.RULE, []):
        form_row.conditions.extend(_nested_rows(rows[sentences.IF], "rule", form_row.number))
        form_row.updates.extend(_nested_rows(rows[sentences.THEN], "rule", form_row.number))
    for form_row in rows.get("entry", []):
        form_row.scopes.extend(_nested_rows(rows[forms_quota.SCOPE], "entry", form_row.number))
    form_choices = _form_choices(place, sheet)
    return {
        "form": rows,
        **_quota_table(place, draft, before, rows, form_choices),
        "fields": fields_of(place.kind, draft),
        "derived": derived,
        "modes": MODES.items(),
        "api_server_modes": API_SERVER_MODES.items(),
        **form_choices,
    }


def _quota_table(
    place: PolicyPlace,
    draft: Draft,
    before: PolicySet | None,
    form_rows: Mapping[str, Sequence[FormRow]],
    choices: Mapping[str, Any],
) -> dict[str, Any]:
    """The quotas of the namespace side by side, and the limits that have no place among them."""
    if place.kind.name != "ResourceQuota" or draft.sheet is None:
        return {}
    # A draft that cannot be read has no table; its limits are shown as a list.
    matrix = matrix_of(draft.manifest, draft.sheet, before, choices["priorities"])
    if matrix is None:
        return {"unplaced": form_rows[forms_quota.HARD]}
    lines: dict[int | None, FormRow] = {row.number: row for row in form_rows[forms_quota.HARD]}
    return {
        "columns": list(matrix.resources),
        "bands": [
            (band, [(spot, lines.get(spot.line)) for spot in band.spots]) for band in matrix.bands
        ],
        "unplaced": [row for row in form_rows[forms_quota.HARD] if row.number not in matrix.lines],
    }


def _form_choices(place: PolicyPlace, sheet: Sheet) -> dict[str, Any]:
    """The choices that the form offers."""
    if place.kind.name == "LimitRange":
        return {"types": limit_range.TYPES, "resources": (*CONTAINER_RESOURCES, "storage")}
    if place.kind.name == "MetadataPolicy":
        return {"conditions": sentences.CONDITIONS.items(), "ready": READY_WORDS.items()}
    if place.kind.name == "ResourceQuota":
        return {
            "resources": forms_quota.offered_resources(sheet),
            "scopes": forms_quota.offered_scopes(sheet),
            "all_scopes": tuple(ALLOWED_NAMES),
            "operators": OPERATORS,
            "priorities": _priorities(place),
        }
    if place.kind.is_configuration:
        return {
            "resources": forms_quota.RESOURCES,
            "all_scopes": tuple(ALLOWED_NAMES),
            "operators": OPERATORS,
            "priorities": _priorities(place),
        }
    return {}


def _priorities(place: PolicyPlace) -> list[str]:
    found = PriorityClass.objects.filter(cluster=place.cluster).order_by("-value", "name")
    return list(found.values_list("name", flat=True))


def _used_amounts(place: PolicyPlace, before: PolicySet | None) -> dict[str, str]:
    """How much of each resource the stored quota has used."""
    if place.kind.name != "ResourceQuota":
        return {}
    quotas_here = before.resource_quotas if before else ()
    stored_quota = next((quota for quota in quotas_here if quota.name == place.name), None)
    if stored_quota is None:
        return {}
    unknown = dict.fromkeys(unknown_names(stored_quota), UNKNOWN)
    return {**unknown, **{name: str(amount) for name, amount in stored_quota.used.items()}}


def fields_of(kind: EditableKind, draft: Draft) -> dict[str, FormCell]:
    """The fields of a draft's form, each a cell."""
    texts = draft.sheet.fields if draft.sheet else {}
    return {
        name: FormCell(name=name, value=texts.get(name, ""), errors=_errors(draft, name))
        for name in kind.fields
    }


def rows_of(group: str, draft: Draft, filled: Mapping[str, str]) -> list[FormRow]:
    """The lines of one group; ``filled`` are texts that stand in cells nobody filled in."""
    lines = draft.sheet.of(group) if draft.sheet else []
    return [
        FormRow(
            group=group,
            number=number,
            is_kept="kept" in line,
            used=filled.get(line.get("resource", ""), ""),
            kept=line.get("kept", ""),
            cells={
                column: FormCell(
                    name=(name := f"{group}-{number}-{column}"),
                    value=line.get(column, ""),
                    derived=filled.get(name, ""),
                    errors=_errors(draft, name),
                )
                for column in FORM_COLUMNS[group]
            },
        )
        for number, line in enumerate(lines)
    ]


def _errors(draft: Draft, cell: str) -> tuple[str, ...]:
    return tuple(finding.message for finding in draft.findings if finding.cell == cell)


def _nested_rows(nested_rows: Iterable[FormRow], column: str, number: int) -> list[FormRow]:
    return [nested_row for nested_row in nested_rows if nested_row[column].value == str(number)]
