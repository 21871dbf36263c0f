"""The state of the editor as the browser sends it: text, form, and which of them was edited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from policies.drafts.draft import Draft, Finding, draft_of_sheet, draft_of_text
from policies.drafts.forms import metadata_rules
from policies.drafts.forms.sheets import read_sheet, with_line, without_line
from policies.manifests import sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.drafts.draft import PolicyPlace
    from policies.drafts.forms.sheets import Built, Line, Sheet

BOTH: Final = "Both the form and the YAML were changed. Choose which of them counts."
BLANK: Final[Mapping[str, Line]] = {
    "row": {"type": "Container"},
    "hard": {},
    "scope": {},
    "rule": {"does": sentences.REFUSE},
    "if": {"on": "label", "is": "DoesNotExist"},
    "then": {"on": "label"},
    "entry": {},
}
"""A new line of each group."""
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
    place: PolicyPlace, data: Mapping[str, str], current: Mapping[str, Any]
) -> EditorState:
    """Find out which side was edited since both agreed, and read that one."""
    shown, text = _lines(data.get("shown", "")), _lines(data.get("yaml", ""))
    # The text both sides last agreed on, sent along: the server keeps no state of an editor.
    base = draft_of_text(place, shown, is_checked=False).manifest or current
    kind = place.kind
    sheet = read_sheet(data, fields=kind.fields, groups=kind.groups) if data.get("form") else None
    built = kind.build(sheet, base) if sheet else None
    form_edited = built is not None and (built.manifest != base or bool(built.problems))
    yaml_edited = text.strip() != shown.strip()
    take = data.get("do", "")
    if take == "take-form" and sheet is not None:
        yaml_edited = False
    is_torn = _is_typed(built, base) and yaml_edited and take != "take-yaml"
    if yaml_edited or sheet is None:
        return _of_text(draft_of_text(place, text), sheet, shown, is_torn=is_torn)
    if form_edited:
        draft = draft_of_sheet(place, sheet, base)
        return EditorState(draft=draft, shown=draft.text)
    draft = replace(draft_of_text(place, shown), sheet=sheet)
    return EditorState(draft=draft, shown=shown)


def _is_typed(built: Built | None, base: Mapping[str, Any]) -> bool:
    """Whether somebody edited the form: a missing tick alone is no edit."""
    if built is None:
        return False
    others = [message for _, message in built.problems if message != metadata_rules.NO_CONDITION]
    return built.manifest != base or bool(others)


def _of_text(draft: Draft, sheet: Sheet | None, shown: str, *, is_torn: bool) -> EditorState:
    """The YAML counts; where it cannot be read, or both count, the form stays as it was sent."""
    if is_torn:
        finding = Finding(message=BOTH)
        torn = replace(draft, sheet=sheet, findings=(finding, *draft.findings))
        return EditorState(draft=torn, shown=shown, yaml_edited=True, is_torn=True)
    if draft.manifest is None:
        return EditorState(draft=replace(draft, sheet=sheet), shown=shown, yaml_edited=True)
    return EditorState(draft=draft, shown=draft.text, yaml_edited=True)


def change_lines(
    place: PolicyPlace, state: EditorState, do: str, base: Mapping[str, Any]
) -> EditorState:
    """Add or remove a line for a button such as ``add:if:2``, ``drop:row:3``, ``ready:require``."""
    sheet = state.draft.sheet
    if sheet is None or state.is_torn:
        return state
    verb, _, rest = do.partition(":")
    group, _, number = rest.partition(":")
    changed = _changed(sheet, verb, group, number)
    draft = draft_of_sheet(place, changed, state.draft.manifest or base)
    return EditorState(draft=draft, shown=draft.text, yaml_edited=True)


def _changed(sheet: Sheet, verb: str, group: str, number: str) -> Sheet:
    if verb == "ready":
        return metadata_rules.with_ready(sheet, group)
    if verb == "drop" and number.isdecimal():
        return without_line(sheet, group, int(number))
    if group not in BLANK:
        return sheet
    parent = {_PARENTS[group]: number} if number.isdecimal() and group in _PARENTS else {}
    named = {"resource": number} if group == "hard" and number else {}
    more = with_line(sheet, group, {**BLANK[group], **parent, **named})
    if group == "rule":
        place = str(len(more.of("rule")) - 1)
        return with_line(more, "if", {**BLANK["if"], "rule": place})
    return more


def _lines(text: str) -> str:
    # Browsers send CRLF for every line break of a textarea.
    return text.replace("\r\n", "\n")
