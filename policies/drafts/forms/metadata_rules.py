"""MetadataPolicy form: rule, if, then lines to predicate and action; ready-made rules, flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.metadata_policy import QOS_ANNOTATION
from policies.drafts.forms.sheets import (
    Built,
    Line,
    Sheet,
    build_metadata,
    can_be_typed,
    show_metadata,
    split,
    without_line,
)
from policies.manifests.sentences import (
    EQUALS,
    EVERY,
    IF,
    REFUSE,
    RULE,
    SELECTORS,
    SET,
    THEN,
    UPDATES,
    parts_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FLAGS: Final = ("ratchet", "strict")
NO_CONDITION: Final = "the rule has no condition: fill one in, or tick that it matches every object"
_SCHEDULER: Final = "scheduler.alpha.kubernetes.io/name"
Ready = tuple[str, tuple[Line, ...], tuple[Line, ...]]
READY: Final[Mapping[str, Ready]] = {
    "require": (REFUSE, ({"on": "label", "is": "DoesNotExist"},), ()),
    "forbid": (REFUSE, ({"on": "label", "is": "Exists"},), ()),
    "default": (SET, ({"on": "label", "is": "DoesNotExist"},), ({"on": "label"},)),
    "allow-list": (REFUSE, ({"on": "label", "is": "Exists"}, {"on": "label", "is": "NotIn"}), ()),
    "scheduler": (
        SET,
        ({"on": "annotation", "key": QOS_ANNOTATION, "is": EQUALS, "values": "BestEffort"},),
        ({"on": "annotation", "key": _SCHEDULER},),
    ),
}
"""Frequent rules by name: their action, and the lines to fill in."""


def show(manifest: Mapping[str, Any]) -> Sheet:
    """The sentences of a manifest; a rule that they cannot express is kept."""
    spec = manifest.get("spec") or {}
    lines: dict[str, list[Line]] = {RULE: [], IF: [], THEN: []}
    for number, rule in enumerate(spec.get("rules") or []):
        sentence = parts_of(number, rule or {})
        is_typed = all(can_be_typed(found) for found in sentence.values())
        given = rule if isinstance(rule, dict) else {}
        action = {"reject": False, **(given.get("policyAction") or {})}
        whole = {"policyPredicate": given.get("policyPredicate") or {}, "policyAction": action}
        # Only sentences that build the same rule again may stand for it.
        if not is_typed or _build_rule(sentence, sentence[RULE][0]) != {**given, **whole}:
            sentence = {RULE: [{"kept": str(number)}]}
        for group, found in sentence.items():
            lines[group] += found
    flags = {name: "on" if spec.get(name) else "" for name in FLAGS}
    return Sheet({**show_metadata(manifest), **flags}, lines)


def build(sheet: Sheet, base: Mapping[str, Any]) -> Built:
    """The manifest of the sentences; kept rules come from ``base``."""
    built = Built(dict(base))
    build_metadata(sheet, base, built)
    spec = dict(base.get("spec") or {})
    kept = spec.get("rules") or []
    rules: list[Any] = []
    for number, line in enumerate(sheet.of(RULE)):
        if (place := line.get("kept", "")).isdecimal():
            rules += [kept[int(place)]] if int(place) < len(kept) else []
        else:
            _note_rule_places(sheet, number, len(rules), built)
            rule = _build_rule(_lines_of_rule(sheet, number), line)
            if not rule["policyPredicate"] and not line.get(EVERY):
                built.problems.append((f"{RULE}-{number}-does", NO_CONDITION))
            rules.append(rule)
    spec["rules"] = rules
    for name in FLAGS:
        spec.pop(name, None)
        spec |= {name: True} if sheet.fields.get(name) else {}
    built.manifest["spec"] = spec
    return built


def with_ready(sheet: Sheet, name: str) -> Sheet:
    """The sheet with one more rule of this name, in place of empty ones."""
    for place in reversed(range(len(sheet.of(RULE)))):
        if _is_blank_rule(sheet, place):
            sheet = without_line(sheet, RULE, place)
    does, conditions, updates = READY.get(name, READY["require"])
    number = str(len(sheet.of(RULE)))
    more: dict[str, list[Line]] = {
        RULE: [{"does": does}],
        IF: [{"rule": number, **line} for line in conditions],
        THEN: [{"rule": number, **line} for line in updates],
    }
    lines = {group: [*sheet.of(group), *found] for group, found in more.items()}
    return Sheet(sheet.fields, lines)


def _is_blank_rule(sheet: Sheet, number: int) -> bool:
    """Whether a rule has no input yet."""
    line, lines = sheet.of(RULE)[number], _lines_of_rule(sheet, number)
    said = any(_is_filled_condition(each) for each in lines[IF])
    sets = any(each.get("key") or each.get("value") for each in lines[THEN])
    return not (said or sets or line.get(EVERY) or "kept" in line)


def _lines_of_rule(sheet: Sheet, number: int) -> dict[str, list[Line]]:
    return {
        group: [line for line in sheet.of(group) if line.get(RULE) == str(number)]
        for group in (IF, THEN)
    }


def _build_rule(lines: Mapping[str, Sequence[Line]], head: Line) -> dict[str, Any]:
    """Build one rule of its lines, without empty ones."""
    predicate: dict[str, Any] = {}
    for on, name in SELECTORS.items():
        mine = [line for line in lines[IF] if line.get("on") == on and _is_filled_condition(line)]
        if mine:
            predicate[name] = _selector_of_lines(mine)
    action: dict[str, Any] = {"reject": head.get("does") == REFUSE}
    for on, name in UPDATES.items():
        found = {
            line.get("key", ""): line.get("value", "")
            for line in lines[THEN]
            if line.get("on") == on and (line.get("key") or line.get("value"))
        }
        action |= {name: found} if found else {}
    return {"policyPredicate": predicate, "policyAction": action}


def _is_filled_condition(line: Line) -> bool:
    return bool(line.get("key") or line.get("values"))


def _selector_of_lines(lines: Sequence[Line]) -> dict[str, Any]:
    selector: dict[str, Any] = {}
    for line in lines:
        key, operator, values = line.get("key", ""), line.get("is", ""), line.get("values", "")
        equal = selector.get("matchLabels", {})
        if operator == EQUALS and key not in equal:
            selector["matchLabels"] = {**equal, key: values}
            continue
        # matchLabels has room for one value of a key; a second one becomes an expression.
        operator = "In" if operator == EQUALS else operator
        entry: dict[str, Any] = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            entry["values"] = split(values)
        selector.setdefault("matchExpressions", []).append(entry)
    return selector


def _note_rule_places(sheet: Sheet, number: int, index: int, built: Built) -> None:
    """Note the cell of each part of a rule."""
    path = f"spec.rules[{index}]"
    built.places[path] = f"{RULE}-{number}-does"
    for group, names, part in (
        (IF, SELECTORS, "policyPredicate"),
        (THEN, UPDATES, "policyAction"),
    ):
        for place, line in enumerate(sheet.of(group)):
            if line.get("rule") == str(number) and line.get("on") in names:
                at = f"{path}.{part}.{names[line['on']]}"
                cell = f"{group}-{place}-key"
                built.places.setdefault(at, cell)
                built.places[f"{at}[{line.get('key', '')}]"] = cell
