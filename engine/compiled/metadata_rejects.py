"""The rejecting rules of one MetadataPolicy in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.compiled import cel
from engine.compiled.manifests import (
    CompiledPolicy,
    CompiledValidation,
    NotExpressible,
    name_missing,
    validating,
)
from engine.metadata_policy import QOS_ANNOTATION
from engine.metadata_policy.rules import EXCLUDED, SYSTEM_NAMESPACES
from engine.policy import InAPIServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.policy import MetadataPolicy, MetadataPolicyRule


_EVERYTHING: Final = ({"apiGroups": ["*"], "resources": ["*"], "operations": ["CREATE", "UPDATE"]},)
EXCLUDED_RULES: Final = (
    {"apiGroups": ["*"], "resources": sorted(EXCLUDED), "operations": ["CREATE", "UPDATE"]},
)
RULES: Final = _EVERYTHING
LABELS: Final = "object.metadata.?labels.orValue({})"
ANNOTATIONS: Final = "object.metadata.?annotations.orValue({})"
_OLD: Final = {
    "oldLabels": "oldObject.metadata.?labels.orValue({})",
    "oldAnnotations": "oldObject.metadata.?annotations.orValue({})",
}
_QOS: Final = f"the portal itself sets {QOS_ANNOTATION}, which this rule selects"
_CANNOT_SPELL: Final = "CEL cannot spell a lone surrogate"


def compile_metadata_policy(
    policy: MetadataPolicy,
    in_api_server: InAPIServer = InAPIServer.ENFORCE,
    *,
    beside: Sequence[MetadataPolicy] = (),
) -> CompiledPolicy:
    """Compile the rejects of a policy; ``beside`` are the namespace's other metadata policies.

    The API server judges the object as it will be stored, the portal as it arrives: a reject that
    selects what some policy of the namespace sets is left out, unless its policy is strict.
    """
    if in_api_server is InAPIServer.OFF or policy.namespace in SYSTEM_NAMESPACES:
        return CompiledPolicy()
    if nameless := name_missing(policy):
        return CompiledPolicy(not_expressible=(nameless,))
    set_keys = _keys_set_by([policy, *beside])
    missing: list[NotExpressible] = []
    variables = {"labels": LABELS, "annotations": ANNOTATIONS, **_OLD}
    texts: list[str] = []
    for index, rule in enumerate(policy.rules):
        if not rule.policy_action.reject:
            missing += _updates_missing(rule, index)
        elif whys := list(_whys(rule, set_keys, is_strict=policy.strict)):
            missing.append(NotExpressible(f"spec.rules[{index}]", whys[0]))
        else:
            condition = predicate(rule, "variables.labels", "variables.annotations")
            if policy.ratchet:
                old = predicate(rule, "variables.oldLabels", "variables.oldAnnotations")
                condition = f'{condition} && !(request.operation == "UPDATE" && {old})'
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


def predicate(rule: MetadataPolicyRule, labels: str, annotations: str) -> str:
    """Whether the maps that two expressions give satisfy a rule's selectors."""
    given = rule.policy_predicate
    selected = ((given.label_selector, labels), (given.annotation_selector, annotations))
    terms = [cel.matches(selector, named) for selector, named in selected if selector is not None]
    return f"({cel.conjunction(terms)})"


def _keys_set_by(policies: Sequence[MetadataPolicy]) -> tuple[frozenset[str], frozenset[str]]:
    """The labels and annotations that rules of these policies may set."""
    setting = [r.policy_action for p in policies for r in p.rules if not r.policy_action.reject]
    return (
        frozenset([key for action in setting for key in action.updated_labels]),
        frozenset([key for action in setting for key in action.updated_annotations]),
    )


def _whys(
    rule: MetadataPolicyRule, set_keys: tuple[frozenset[str], frozenset[str]], *, is_strict: bool
) -> Iterator[str]:
    """Why a reject cannot be compiled; mostly nothing."""
    given = rule.policy_predicate
    selectors = ((given.label_selector, "label"), (given.annotation_selector, "annotation"))
    for (selector, what), set_by_rules in zip(selectors, set_keys, strict=True):
        if selector is None:
            continue
        if not all(map(cel.is_sayable, cel.texts_of(selector))):
            yield _CANNOT_SPELL
        selected = cel.keys_of(selector)
        if what == "annotation" and QOS_ANNOTATION in selected:
            yield _QOS
        if not is_strict and (changed := sorted(selected & set_by_rules)):
            yield (
                f"metadata policies of the namespace set the {what} {changed[0]}, which this rule "
                "selects, and the API server judges afterwards; strict policies do so, too"
            )


def _updates_missing(rule: MetadataPolicyRule, index: int) -> Iterator[NotExpressible]:
    action = rule.policy_action
    updates = (
        ("updatedLabels", action.updated_labels),
        ("updatedAnnotations", action.updated_annotations),
    )
    for name, given in updates:
        if given:
            yield NotExpressible(
                f"spec.rules[{index}].policyAction.{name}", "only the portal sets metadata"
            )
