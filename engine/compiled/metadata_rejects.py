"""The rejecting rules of one MetadataPolicy as a ValidatingAdmissionPolicy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.compiled import cel
from engine.compiled.manifests import (
    MOST_EXPRESSIONS,
    CompiledPolicy,
    CompiledValidation,
    NotExpressible,
    validating,
)
from engine.compiled.metadata_rules import (
    ANNOTATIONS,
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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.compiled.metadata_rules import Key
    from engine.policy import InAPIServer, MetadataPolicy, MetadataPolicyRule

_OLD: Final = {
    "oldLabels": "oldObject.metadata.?labels.orValue({})",
    "oldAnnotations": "oldObject.metadata.?annotations.orValue({})",
}


def compile_rejects(
    policy: MetadataPolicy, in_api_server: InAPIServer, others: Sequence[MetadataPolicy]
) -> CompiledPolicy:
    """Compile the rejects of a policy; ``others`` are the namespace's other metadata policies.

    The API server judges the object as it will be stored, the portal as it arrives: a reject that
    selects what some policy of the namespace sets is left out, unless its policy is strict.
    """
    set_keys = {
        key for each in [policy, *others] for rule in each.rules for key in keys_set_by(rule, each)
    }
    missing: list[NotExpressible] = []
    variables = {"labels": LABELS, "annotations": ANNOTATIONS, **_OLD}
    texts: list[str] = []
    total = 0
    for index, rule in enumerate(policy.rules):
        if not rule.policy_action.reject:
            continue
        if why := _why_not(rule, set() if policy.strict else set_keys):
            missing.append(NotExpressible(f"spec.rules[{index}]", why))
            continue
        condition = predicate_of_variables(rule)
        if policy.ratchet:
            old = predicate(rule, "variables.oldLabels", "variables.oldAnnotations")
            condition = f'{condition} && !(request.operation == "UPDATE" && {old})'
        total += len(condition)
        if total > MOST_EXPRESSIONS:
            missing.append(NotExpressible(f"spec.rules[{index}]", TOO_LARGE))
            continue
        variables[f"rule{index}"] = condition
        text = f"rejected by MetadataPolicy {policy.namespace}/{policy.name} rule {index}"
        texts.append(f'variables.rule{index} ? {cel.literal(text)} : ""')
    manifests: tuple[Mapping[str, Any], ...] = ()
    if texts:
        validation = CompiledValidation(
            rules=RULES,
            excluded=EXCLUDED_RULES,
            variables=variables,
            texts=f'{cel.listed(texts)}.filter(t, t != "")',
            fallback=f"rejected by MetadataPolicy {policy.namespace}/{policy.name}",
        )
        manifests = validating(policy, in_api_server, validation)
    return CompiledPolicy(manifests=manifests, not_expressible=tuple(missing))


def _why_not(rule: MetadataPolicyRule, set_keys: set[Key]) -> str:
    """Why a reject cannot be compiled; mostly empty."""
    if why := why_not_selectable(rule):
        return why
    changed = sorted(selected_keys(rule) & set_keys)
    if not changed:
        return ""
    return (
        f"metadata policies of the namespace set the {' '.join(changed[0])}, which this rule "
        "selects, and the API server judges afterwards; strict policies do so, too"
    )
