"""What compiled rejects and updates share: requests, predicates, the keys that rules read and set.

A key is ``("label", …)`` or ``("annotation", …)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.compiled import cel
from engine.compiled.manifests import LONGEST_EXPRESSION
from engine.limit_range.defaults import ANNOTATION as DEFAULTS_ANNOTATION
from engine.metadata_policy import QOS_ANNOTATION
from engine.metadata_policy.rules import EXCLUDED
from engine.policy import Enforcement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.policy import MetadataPolicy, MetadataPolicyRule

    Key = tuple[str, str]

RULES: Final = ({"apiGroups": ["*"], "resources": ["*"], "operations": ["CREATE", "UPDATE"]},)
EXCLUDED_RULES: Final = (
    {"apiGroups": ["*"], "resources": sorted(EXCLUDED), "operations": ["CREATE", "UPDATE"]},
)
LABELS: Final = "object.metadata.?labels.orValue({})"
ANNOTATIONS: Final = "object.metadata.?annotations.orValue({})"
TOO_LARGE: Final = "with it, the compiled object is larger than the API server stores"
_LONGEST_PREDICATE: Final = LONGEST_EXPRESSION * 49 // 100
"""A ratchet says it twice in one expression."""
_TOO_LONG: Final = "its selectors are longer than the API server reads in one expression"
CANNOT_SPELL: Final = "CEL cannot spell a lone surrogate"
_SET_BY_THE_PORTAL: Final = (
    ("annotation", QOS_ANNOTATION),
    ("annotation", DEFAULTS_ANNOTATION),
)


def predicate(rule: MetadataPolicyRule, labels: str, annotations: str) -> str:
    """Whether the maps that two expressions give satisfy a rule's selectors."""
    given = rule.policy_predicate
    selected = ((given.label_selector, labels), (given.annotation_selector, annotations))
    terms = [cel.matches(selector, named) for selector, named in selected if selector is not None]
    return f"({cel.conjunction(terms)})"


def predicate_of_variables(rule: MetadataPolicyRule) -> str:
    """Whether the variables ``labels`` and ``annotations`` satisfy a rule's selectors."""
    return predicate(rule, "variables.labels", "variables.annotations")


def why_not_selectable(rule: MetadataPolicyRule) -> str:
    """Why the API server cannot decide as the portal whether a rule matches; mostly empty."""
    given = rule.policy_predicate
    for selector in (given.label_selector, given.annotation_selector):
        if selector is not None and not all(map(cel.is_sayable, cel.texts_of(selector))):
            return CANNOT_SPELL
    selected = selected_keys(rule)
    for what, key in _SET_BY_THE_PORTAL:
        if (what, key) in selected:
            return f"the portal itself sets {key}, which this rule selects"
    return _TOO_LONG if len(predicate_of_variables(rule)) > _LONGEST_PREDICATE else ""


def selected_keys(rule: MetadataPolicyRule) -> frozenset[Key]:
    """The keys on which the verdict of a rule's predicate depends."""
    given = rule.policy_predicate
    selectors = (("label", given.label_selector), ("annotation", given.annotation_selector))
    return frozenset(
        (what, key)
        for what, selector in selectors
        if selector is not None
        for key in cel.keys_of(selector)
    )


def keys_set_by(rule: MetadataPolicyRule, policy: MetadataPolicy) -> Mapping[Key, str]:
    """The keys that a rule of a policy sets, with their values."""
    action = rule.policy_action
    if action.reject or policy.enforcement is not Enforcement.ENFORCE:
        return {}
    labels = {("label", key): value for key, value in action.updated_labels.items()}
    return labels | {("annotation", key): v for key, v in action.updated_annotations.items()}
