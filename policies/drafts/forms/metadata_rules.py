"""MetadataPolicy form: rule, if, then lines to predicate and action; READY rules; flags."""

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


def show(policy_manifest: Mapping[str, Any]) -> Sheet:
    """The sentences of a manifest; a rule that they cannot express is kept."""
    policy_spec = policy_manifest.get("spec") or {}
    rule_lines: dict[str, list[Line]] = {RULE: [], IF: [], THEN: []}
    for number, rule in enumerate(policy_spec.get("rules") or []):
        sentence = parts_of(number, rule or {})
        is_typed = all(can_be_typed(sentence_lines) for sentence_lines in sentence.values())
        given_rule = rule if isinstance(rule, dict) else {}
        acts = {"reject": False, **(given_rule.get("policyAction") or {})}
        whole = {"policyPredicate": given_rule.get("policyPredicate") or {}, "policyAction": acts}
        # Only sentences that build the same rule again may stand for it.
        if not is_typed or _build_rule(sentence, sentence[RULE][0]) != {**given_rule, **whole}:
            sentence = {RULE: [{"kept": str(number)}]}
        for group, sentence_lines in sentence.items():
            rule_lines[group] += sentence_lines
    flag_cells = {name: "on" if policy_spec.get(name) else "" for name in FLAGS}
    return Sheet({**show_metadata(policy_manifest), **flag_cells}, rule_lines)


def build(sheet: Sheet, base_policy: Mapping[str, Any]) -> Built:
    """The manifest of the sentences; kept rules come from ``base_policy``."""
    built_policy = Built(dict(base_policy))
    build_metadata(sheet, base_policy, built_policy)
    policy_spec = dict(base_policy.get("spec") or {})
    kept_rules = policy_spec.get("rules") or []
    rules: list[Any] = []
    for number, rule_line in enumerate(sheet.of(RULE)):
        if (kept_number := rule_line.get("kept", "")).isdecimal():
            built_policy.kept[RULE, kept_number] = str(len(rules))
            rules += [kept_rules[int(kept_number)]] if int(kept_number) < len(kept_rules) else []
        else:
            _note_rule_places(sheet, number, len(rules), built_policy)
            rule = _build_rule(_lines_of_rule(sheet, number), rule_line)
            if not rule["policyPredicate"] and not rule_line.get(EVERY):
                built_policy.problems.append((f"{RULE}-{number}-does", NO_CONDITION))
            rules.append(rule)
    policy_spec["rules"] = rules
    for name in FLAGS:
        policy_spec.pop(name, None)
        policy_spec |= {name: True} if sheet.fields.get(name) else {}
    built_policy.manifest["spec"] = policy_spec
    return built_policy


def with_ready(sheet: Sheet, name: str) -> Sheet:
    """The sheet with one more rule of this name, in place of empty ones."""
    for rule_number in reversed(range(len(sheet.of(RULE)))):
        if _is_blank_rule(sheet, rule_number):
            sheet = without_line(sheet, RULE, rule_number)
    does, conditions, updates = READY.get(name, READY["require"])
    number = str(len(sheet.of(RULE)))
    ready_lines: dict[str, list[Line]] = {
        RULE: [{"does": does}],
        IF: [{"rule": number, **line} for line in conditions],
        THEN: [{"rule": number, **line} for line in updates],
    }
    rule_lines = {group: [*sheet.of(group), *found] for group, found in ready_lines.items()}
    return Sheet(sheet.fields, rule_lines)


def _is_blank_rule(sheet: Sheet, number: int) -> bool:
    """Whether a rule has no input yet."""
    rule_line, lines_of_rule = sheet.of(RULE)[number], _lines_of_rule(sheet, number)
    has_condition = any(_is_filled_condition(each) for each in lines_of_rule[IF])
    has_update = any(each.get("key") or each.get("value") for each in lines_of_rule[THEN])
    return not (has_condition or has_update or rule_line.get(EVERY) or "kept" in rule_line)


def _lines_of_rule(sheet: Sheet, number: int) -> dict[str, list[Line]]:
    return {
        group: [line for line in sheet.of(group) if line.get(RULE) == str(number)]
        for group in (IF, THEN)
    }


def _build_rule(lines: Mapping[str, Sequence[Line]], head: Line) -> dict[str, Any]:
    """Build one rule of its lines, without empty ones."""
    policy_predicate: dict[str, Any] = {}
    for on, name in SELECTORS.items():
        met = [line for line in lines[IF] if line.get("on") == on and _is_filled_condition(line)]
        if met:
            policy_predicate[name] = _selector_of_lines(met)
    policy_action: dict[str, Any] = {"reject": head.get("does") == REFUSE}
    for on, name in UPDATES.items():
        updated = {
            line.get("key", ""): line.get("value", "")
            for line in lines[THEN]
            if line.get("on") == on and (line.get("key") or line.get("value"))
        }
        policy_action |= {name: updated} if updated else {}
    return {"policyPredicate": policy_predicate, "policyAction": policy_action}


def _is_filled_condition(line: Line) -> bool:
    return bool(line.get("key") or line.get("values"))


def _selector_of_lines(condition_lines: Sequence[Line]) -> dict[str, Any]:
    selector: dict[str, Any] = {}
    for line in condition_lines:
        key, operator, values = line.get("key", ""), line.get("is", ""), line.get("values", "")
        match_labels = selector.get("matchLabels", {})
        if operator == EQUALS and key not in match_labels:
            selector["matchLabels"] = {**match_labels, key: values}
            continue
        # matchLabels has room for one value of a key; a second one becomes an expression.
        operator = "In" if operator == EQUALS else operator
        match_expression: dict[str, Any] = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            match_expression["values"] = split(values)
        selector.setdefault("matchExpressions", []).append(match_expression)
    return selector


def _note_rule_places(sheet: Sheet, number: int, index: int, built: Built) -> None:
    """Note the cell of each part of a rule."""
    rule_path = f"spec.rules[{index}]"
    built.places[rule_path] = f"{RULE}-{number}-does"
    for group, names, part in (
        (IF, SELECTORS, "policyPredicate"),
        (THEN, UPDATES, "policyAction"),
    ):
        for place, line in enumerate(sheet.of(group)):
            if line.get("rule") == str(number) and line.get("on") in names:
                part_path = f"{rule_path}.{part}.{names[line['on']]}"
                part_cell = f"{group}-{place}-key"
                built.places.setdefault(part_path, part_cell)
                built.places[f"{part_path}[{line.get('key', '')}]"] = part_cell
