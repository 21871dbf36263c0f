"""EditorState, read from what the browser sent: YAML or form edited, torn; lines added, dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from policies.drafts.draft import Draft, Finding
from policies.drafts.forms import metadata_rules, namespace_class
from policies.drafts.forms.sheets import read_sheet, with_cell, with_line, without_line
from policies.manifests import sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.drafts.draft import EditedPlace
    from policies.drafts.forms.sheets import Built, Line, Sheet

BOTH_CHANGED: Final = "Both the form and the YAML were changed. Choose which one to keep."
BLANK_LINES: Final[Mapping[str, Line]] = {
    "row": {"type": "Container"},
    "hard": {},
    "scope": {},
    "rule": {"does": sentences.REFUSE},
    "if": {"on": "label", "is": "DoesNotExist"},
    "then": {"on": "label"},
    "entry": {},
    namespace_class.PARAMETER: {"type": "quantity"},
    namespace_class.POLICY: {},
}
"""A new line of each group."""
_ASKED_COLUMNS: Final = {"hard": "resource", namespace_class.POLICY: "kind"}
"""The column that the rest of a button's value fills in: ``add:hard:pods``."""
_PARENTS: Final = {"if": "rule", "then": "rule", "scope": "entry"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorState:
    """The draft; ``shown`` is the text that form and YAML last agreed on.

    ``is_torn``: both were changed since, and nobody has chosen which counts.
    """

    draft: Draft
    shown: str
    yaml_edited: bool = False
    is_torn: bool = False


def read_state(
    place: EditedPlace, data: Mapping[str, str], current: Mapping[str, Any]
) -> EditorState:
    """Find out which side was edited since both agreed, and read that one."""
    shown_text, yaml_text = _unix_lines(data.get("shown", "")), _unix_lines(data.get("yaml", ""))
    # The text both sides last agreed on, sent along: the server keeps no state of an editor.
    base_manifest = place.read_text(shown_text, is_checked=False).manifest or current
    kind = place.kind
    sheet = read_sheet(data, fields=kind.fields, groups=kind.groups) if data.get("form") else None
    built = kind.build(sheet, base_manifest) if sheet else None
    form_edited = built is not None and (built.manifest != base_manifest or bool(built.problems))
    yaml_edited = yaml_text.strip() != shown_text.strip()
    side_taken = data.get("do", "")
    if side_taken == "take-form" and sheet is not None:
        yaml_edited = False
    is_torn = _is_typed(built, base_manifest) and yaml_edited and side_taken != "take-yaml"
    if yaml_edited or sheet is None:
        return _state_of_text(place.read_text(yaml_text), sheet, shown_text, is_torn=is_torn)
    if form_edited:
        sent_draft = place.read_sheet(sheet, base_manifest)
        return EditorState(draft=sent_draft, shown=sent_draft.text)
    sent_draft = replace(place.read_text(shown_text), sheet=sheet)
    return EditorState(draft=sent_draft, shown=shown_text)


def _is_typed(built: Built | None, base_manifest: Mapping[str, Any]) -> bool:
    """Whether somebody edited the form: a missing tick alone is no edit."""
    if built is None:
        return False
    others = [message for _, message in built.problems if message != metadata_rules.NO_CONDITION]
    return built.manifest != base_manifest or bool(others)


def _state_of_text(draft: Draft, sheet: Sheet | None, shown: str, *, is_torn: bool) -> EditorState:
    """The YAML counts; where it cannot be read, or both count, the form stays as it was sent."""
    if is_torn:
        torn_finding = Finding(message=BOTH_CHANGED)
        torn_draft = replace(draft, sheet=sheet, findings=(torn_finding, *draft.findings))
        return EditorState(draft=torn_draft, shown=shown, yaml_edited=True, is_torn=True)
    if draft.manifest is None:
        return EditorState(draft=replace(draft, sheet=sheet), shown=shown, yaml_edited=True)
    return EditorState(draft=draft, shown=draft.text, yaml_edited=True)


def change_lines(
    place: EditedPlace, state: EditorState, button: str, base: Mapping[str, Any]
) -> EditorState:
    """Act for a button: ``add:if:2``, ``drop:row:3``, ``ready:require``, ``use:row-1-max:3Gi``."""
    sheet = state.draft.sheet
    if sheet is None or state.is_torn:
        return state
    button_verb, _, button_rest = button.partition(":")
    line_group, _, line_number = button_rest.partition(":")
    changed_sheet = _changed_sheet(sheet, button_verb, line_group, line_number)
    changed_draft = place.read_sheet(changed_sheet, state.draft.manifest or base)
    return EditorState(draft=changed_draft, shown=changed_draft.text, yaml_edited=True)


def _changed_sheet(sheet: Sheet, button_verb: str, line_group: str, number: str) -> Sheet:
    if button_verb == "use":
        return with_cell(sheet, line_group, number)
    if button_verb == "ready":
        return metadata_rules.with_ready(sheet, line_group)
    if button_verb == "drop" and number.isdecimal():
        return without_line(sheet, line_group, int(number))
    if line_group not in BLANK_LINES:
        return sheet
    parent = {_PARENTS[line_group]: number} if number.isdecimal() and line_group in _PARENTS else {}
    asked = _ASKED_COLUMNS.get(line_group, "")
    asked_cell = {asked: number} if asked and number else {}
    longer = with_line(sheet, line_group, {**BLANK_LINES[line_group], **parent, **asked_cell})
    if line_group == "rule":
        rule_number = str(len(longer.of("rule")) - 1)
        return with_line(longer, "if", {**BLANK_LINES["if"], "rule": rule_number})
    return longer


def _unix_lines(text: str) -> str:
    # Browsers send CRLF for every line break of a textarea.
    return text.replace("\r\n", "\n")
