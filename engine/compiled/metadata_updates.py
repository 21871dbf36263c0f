"""The updates of one MetadataPolicy as a MutatingAdmissionPolicy.

The portal sees what the API server has set already, and the API server may run a policy twice: no
update may change which rules match. The API server runs policies in no certain order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engine.compiled import cel
from engine.compiled.manifests import (
    LONGEST_EXPRESSION,
    MOST_EXPRESSIONS,
    CompiledMutation,
    CompiledPolicy,
    NotExpressible,
    mutating,
)
from engine.compiled.metadata_rules import (
    ANNOTATIONS,
    CANNOT_SPELL,
    EXCLUDED_RULES,
    LABELS,
    RULES,
    TOO_LARGE,
    keys_set_by,
    predicate,
    predicate_of_variables,
    selected_keys,
    why_not_selectable,
)
from engine.patch import pointer
from engine.policy import Enforcement, InAPIServer
from engine.selector import LabelSelector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.compiled.metadata_rules import Key
    from engine.policy import MetadataPolicy, MetadataPolicyRule

    RuleName = tuple[str, int]

_FIELDS: Final = {"label": "updatedLabels", "annotation": "updatedAnnotations"}
_MAPS: Final = {"label": "labels", "annotation": "annotations"}
_CANNOT_AUDIT: Final = "the API server cannot note what it would set"
_NOT_ENFORCED: Final = f"the policy only warns or audits, and {_CANNOT_AUDIT}"
_ALL_OR_NONE: Final = "the rule selects what it sets, and the API server cannot set all of it"


@dataclass(slots=True)
class _Rules:
    """All rules of a namespace: by key the rules that select it, and those that set it, to what."""

    named: dict[RuleName, MetadataPolicyRule] = field(default_factory=dict)
    selecting: defaultdict[Key, set[RuleName]] = field(default_factory=lambda: defaultdict(set))
    setting: defaultdict[Key, dict[RuleName, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    whys: dict[RuleName, str] = field(default_factory=dict)

    def add(self, policy: MetadataPolicy) -> None:
        """Take in the rules of one policy."""
        for index, rule in enumerate(policy.rules):
            name = (policy.name, index)
            self.named[name] = rule
            for key in selected_keys(rule):
                self.selecting[key].add(name)
            for key, value in keys_set_by(rule, policy).items():
                self.setting[key][name] = value

    def why_not(self, name: RuleName) -> str:
        """Why the API server cannot run a rule at all; mostly empty."""
        if name not in self.whys:
            self.whys[name] = self._find_why_not(name)
        return self.whys[name]

    def _find_why_not(self, name: RuleName) -> str:
        if why := why_not_selectable(self.named[name]):
            return why
        for key in sorted(selected_keys(self.named[name])):
            if self.setting.get(key, {}).keys() - {name}:
                return f"another rule sets the {' '.join(key)}, which this rule selects"
        return ""

    def why_not_set(self, name: RuleName, key: Key) -> str:
        """Why the API server cannot set a key by a rule that it can run; mostly empty."""
        values = self.setting[key]
        if not all(map(cel.is_sayable, (key[1], *values.values()))):
            return CANNOT_SPELL
        if self.selecting.get(key, set()) - {name}:
            return "another rule selects it, and would see it set already"
        if len(set(values.values())) == 1:
            return ""
        # All rules that set the key are compiled, or none: otherwise both sides would take turns.
        if len({policy for policy, _ in values}) > 1:
            return "another policy sets it to another value, and the order of both is not certain"
        if any(self.why_not(each) or self.selects_what_it_sets(each) for each in values):
            return "another rule sets it to another value, and one of both may match only once"
        return ""

    def selects_what_it_sets(self, name: RuleName) -> bool:
        """Whether a rule selects what it sets: it may not match any more once it was run."""
        return any(name in self.setting.get(key, {}) for key in selected_keys(self.named[name]))


def compile_updates(
    policy: MetadataPolicy, in_api_server: InAPIServer, others: Sequence[MetadataPolicy]
) -> CompiledPolicy:
    """Compile the updates of a policy; ``others`` are the namespace's other metadata policies."""
    if in_api_server is InAPIServer.AUDIT or policy.enforcement is not Enforcement.ENFORCE:
        is_enforced = policy.enforcement is Enforcement.ENFORCE
        why = _CANNOT_AUDIT if is_enforced else _NOT_ENFORCED
        named = [_missing(index, rule, why) for index, rule in enumerate(policy.rules)]
        return CompiledPolicy(not_expressible=tuple([each for some in named for each in some]))
    rules = _Rules()
    for each in (policy, *others):
        rules.add(each)
    kept, missing = _divided(policy, rules)
    if not kept:
        return CompiledPolicy(not_expressible=tuple(missing))
    mutation = _mutation(policy, kept)
    if _is_too_large(mutation):
        missing += [
            NotExpressible(_key_field(index, key), TOO_LARGE)
            for index, keys in kept.items()
            for key in keys
        ]
        return CompiledPolicy(not_expressible=tuple(missing))
    return CompiledPolicy(manifests=mutating(policy, mutation), not_expressible=tuple(missing))


def _divided(
    policy: MetadataPolicy, rules: _Rules
) -> tuple[dict[int, Mapping[Key, str]], list[NotExpressible]]:
    """Divide the updates of a policy into those that can be compiled, by rule, and the others."""
    kept: dict[int, Mapping[Key, str]] = {}
    missing: list[NotExpressible] = []
    for index, rule in enumerate(policy.rules):
        name = (policy.name, index)
        wanted = keys_set_by(rule, policy)
        if why := rules.why_not(name) if wanted else "":
            missing += _missing(index, rule, why)
            continue
        whys = {key: rules.why_not_set(name, key) for key in wanted}
        if any(whys.values()) and rules.selects_what_it_sets(name):
            whys = {key: why or _ALL_OR_NONE for key, why in whys.items()}
        missing += [NotExpressible(_key_field(index, key), why) for key, why in whys.items() if why]
        if left := {key: value for key, value in wanted.items() if not whys[key]}:
            kept[index] = left
    return kept, missing


def _is_too_large(mutation: CompiledMutation) -> bool:
    total = len(mutation.patch) + sum(map(len, mutation.variables.values()))
    return len(mutation.patch) > LONGEST_EXPRESSION or total > MOST_EXPRESSIONS


def _missing(index: int, rule: MetadataPolicyRule, why: str) -> list[NotExpressible]:
    """Name all updates of a rule."""
    action = rule.policy_action
    given = {"label": action.updated_labels, "annotation": action.updated_annotations}
    return [
        NotExpressible(_field(index, what), why)
        for what, updates in given.items()
        if updates and not action.reject
    ]


def _field(index: int, what: str) -> str:
    return f"spec.rules[{index}].policyAction.{_FIELDS[what]}"


def _key_field(index: int, key: Key) -> str:
    return f"{_field(index, key[0])}[{key[1]}]"


def _mutation(policy: MetadataPolicy, kept: Mapping[int, Mapping[Key, str]]) -> CompiledMutation:
    """Set the keys of all rules that match, in their order: the last one wins."""
    # A condition cannot read the policy's variables.
    needs = " || ".join(
        f"{predicate(policy.rules[index], 'labels', 'annotations')} && !({_is_set(keys)})"
        for index, keys in kept.items()
    )
    operations = []
    for what, name in _MAPS.items():
        if rules := [index for index, keys in kept.items() if any(what == key[0] for key in keys)]:
            matched = " || ".join(f"variables.rule{index}" for index in rules)
            missing = f"!has(object.metadata.{name}) && ({matched})"
            operations.append(f"{missing} ? [{_addition((name,), '{}')}] : []")
    for index, keys in kept.items():
        additions = [
            _addition((_MAPS[what], key), cel.literal(value)) for (what, key), value in keys.items()
        ]
        operations.append(f"variables.rule{index} ? {cel.listed(additions)} : []")
    return CompiledMutation(
        rules=RULES,
        excluded=EXCLUDED_RULES,
        is_needed=f"[{LABELS}].exists(labels, [{ANNOTATIONS}].exists(annotations, {needs}))",
        variables={
            "labels": LABELS,
            "annotations": ANNOTATIONS,
            **{f"rule{index}": predicate_of_variables(policy.rules[index]) for index in kept},
        },
        patch=f"{cel.listed(operations)}.flatten()",
    )


def _is_set(keys: Mapping[Key, str]) -> str:
    """Whether ``labels`` and ``annotations`` have all these keys with these values."""
    maps = (("label", "labels"), ("annotation", "annotations"))
    return cel.conjunction(
        cel.matches(LabelSelector(match_labels=wanted), present)
        for what, present in maps
        if (wanted := {key[1]: value for key, value in keys.items() if key[0] == what})
    )


def _addition(path: tuple[str, ...], value: str) -> str:
    return (
        f'JSONPatch{{op: "add", path: {cel.literal(pointer(("metadata", *path)))}, value: {value}}}'
    )
