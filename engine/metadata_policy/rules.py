"""Apply MetadataPolicy rules: match a snapshot, reject, ratchet, recheck; idle and setting rules.

All predicates see one snapshot of the metadata, so that no rule depends on another one's updates.
Source: the seed's design with the resolutions of the semantics reference, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.cache import once
from engine.decision import Outcome, Reason, Step, Violation
from engine.fields import decode_string_map, expect
from engine.metadata_policy.definition import QOS_ANNOTATION
from engine.metadata_policy.updates import Update, collect_updates, set_metadata
from engine.names import MAX_ANNOTATIONS, annotations_size
from engine.policy import Enforcement, MetadataPolicy, MetadataPolicyRule
from engine.request import AdmissionRequest, Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.patch import PatchOperation

_OWN_KINDS: Final = frozenset({"limitranges", "resourcequotas", "metadatapolicies"})
EXCLUDED: Final = _OWN_KINDS | {
    "events",
    "leases",
    "endpoints",
    "endpointslices",
    "namespaces",
    "tokenreviews",
    "selfsubjectreviews",
    "selfsubjectrulesreviews",
    "subjectaccessreviews",
    "selfsubjectaccessreviews",
    "localsubjectaccessreviews",
}
SYSTEM_NAMESPACES: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
_TOO_LONG: Final = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"


class PodMetadata(NamedTuple):
    """The labels and annotations that predicates see."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}

    @classmethod
    def of(cls, obj: Mapping[str, Any] | None) -> PodMetadata:
        """Read them from an object; raises ``DecodeError`` where they are not maps of strings."""
        metadata = expect((obj or {}).get("metadata"), dict, "metadata", "v1.ObjectMeta")
        return cls(
            labels=decode_string_map(metadata.get("labels"), "metadata.labels"),
            annotations=decode_string_map(metadata.get("annotations"), "metadata.annotations"),
        )

    def with_qos(self, qos: str) -> PodMetadata:
        """Add the QoS annotation, which predicates may select."""
        if not qos:
            return self
        return PodMetadata(
            labels=self.labels, annotations={**self.annotations, QOS_ANNOTATION: qos}
        )


class MetadataResult(NamedTuple):
    """The result of the rules; ``object`` is the given one if they set nothing."""

    object: Mapping[str, Any]
    violations: tuple[Violation, ...] = ()
    observed: tuple[Violation, ...] = ()
    operations: tuple[PatchOperation, ...] = ()
    warnings: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """A rule as if it matched, with its text and its step in case it does not."""

    policy: MetadataPolicy
    index: int
    rule: MetadataPolicyRule
    text: str
    no_match: Step

    @property
    def is_enforced(self) -> bool:
        """Whether the rule takes effect; otherwise it only warns or is recorded."""
        return self.policy.enforcement is Enforcement.ENFORCE

    def step(self, outcome: Outcome, detail: str) -> Step:
        """Build the trace's entry for the rule."""
        return _rule_step(self.policy, self.index, outcome, detail)

    def with_mode(self, text: str) -> str:
        """Add the enforcement to a text where the rule is not enforced."""
        return text if self.is_enforced else f"{text} (only {self.policy.enforcement})"


def reason_not_applicable(request: AdmissionRequest) -> str:
    """Explain why metadata policies do not apply to a request; empty where they do."""
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return f"metadata policies do not judge {request.operation}"
    if request.sub_resource:
        return f"metadata policies do not judge the subresource {request.sub_resource}"
    if not request.namespace or request.resource.resource in EXCLUDED:
        return f"metadata policies do not judge {request.resource}"
    if request.namespace in SYSTEM_NAMESPACES:
        return f"metadata policies leave the namespace {request.namespace} alone"
    return "the object is being deleted" if request.is_being_deleted else ""


def apply(
    request: AdmissionRequest,
    policies: tuple[MetadataPolicy, ...],
    snapshot: PodMetadata,
    obj: Mapping[str, Any],
) -> MetadataResult:
    """Run all rules: an enforced reject refuses, and then no rule sets anything.

    Updates go to ``obj``; predicates see ``snapshot``.
    """
    rule_matches, steps = _match(policies, snapshot)
    setters = [match for match in rule_matches if not match.rule.policy_action.reject]
    rejected = _judge_rejects(request, rule_matches)
    setting = () if rejected.violations else tuple([m for m in setters if m.is_enforced])
    idle_rules = setters if rejected.violations else [m for m in setters if not m.is_enforced]
    result = _set_all(obj, setting)
    return MetadataResult(
        object=result.object,
        violations=rejected.violations + result.violations,
        observed=rejected.observed,
        operations=result.operations,
        warnings=(*rejected.warnings, *result.warnings, *_idle_warnings(idle_rules)),
        steps=_in_rule_order([*steps, *rejected.steps, *result.steps, *_idle_steps(idle_rules)]),
    )


def recheck(
    request: AdmissionRequest, policies: tuple[MetadataPolicy, ...], obj: Mapping[str, Any]
) -> MetadataResult:
    """Evaluate the rejects of ``strict`` policies again on the object as it will be stored."""
    strict = tuple([policy for policy in policies if policy.strict])
    rule_matches, steps = _match(strict, PodMetadata.of(obj))
    rejected = _judge_rejects(request, rule_matches)
    return MetadataResult(
        object=obj,
        violations=rejected.violations,
        observed=rejected.observed,
        warnings=rejected.warnings,
        steps=_in_rule_order([*steps, *rejected.steps]),
    )


class _Rejects(NamedTuple):
    """The results of rejecting rules, named as in ``MetadataResult``."""

    violations: tuple[Violation, ...] = ()
    observed: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()


_NO_REJECTS: Final = _Rejects()


def _judge_rejects(request: AdmissionRequest, rule_matches: list[_Rule]) -> _Rejects:
    """Evaluate the rejecting ones of the rules that matched."""
    rejects = [match for match in rule_matches if match.rule.policy_action.reject]
    if not rejects:
        return _NO_REJECTS
    rejects, ratcheted = _ratchet(request, rejects)
    violations, observed, warnings = _reject_verdicts(rejects)
    return _Rejects(
        violations=violations,
        observed=observed,
        warnings=warnings,
        steps=(
            *ratcheted,
            *[match.step(Outcome.VIOLATED, match.with_mode("rejected")) for match in rejects],
        ),
    )


def _match(
    policies: tuple[MetadataPolicy, ...], snapshot: PodMetadata
) -> tuple[list[_Rule], list[Step]]:
    """Match every rule in canonical order: those that match, and the steps of the others."""
    rule_matches: list[_Rule] = []
    steps: list[Step] = []
    # By bytes, as Go compares names; a lone surrogate in one must not end the review.
    for policy in sorted(policies, key=lambda p: p.name.encode("utf-8", "surrogatepass")):
        for match in _rules(policy):
            if matches_rule(match.rule, snapshot):
                rule_matches.append(match)
            else:
                steps.append(match.no_match)
    return rule_matches, steps


@once
def _rules(policy: MetadataPolicy) -> tuple[_Rule, ...]:
    """The rules of one policy, prepared once."""
    return tuple(
        _Rule(
            policy,
            index,
            rule,
            text=f"MetadataPolicy {policy.namespace}/{policy.name} rule {index}",
            no_match=_rule_step(policy, index, Outcome.NOT_MATCHED, ""),
        )
        for index, rule in enumerate(policy.rules)
    )


def matches_rule(rule: MetadataPolicyRule, snapshot: PodMetadata) -> bool:
    """Whether all selectors of a rule's predicate match; an absent one always does."""
    labels = rule.policy_predicate.label_selector
    annotations = rule.policy_predicate.annotation_selector
    return (labels is None or labels.matches(snapshot.labels)) and (
        annotations is None or annotations.matches(snapshot.annotations)
    )


def _ratchet(request: AdmissionRequest, rejects: list[_Rule]) -> tuple[list[_Rule], list[Step]]:
    """Drop rejects that the stored object matched already, where the policy has ``ratchet``."""
    if request.operation is not Operation.UPDATE or not any(m.policy.ratchet for m in rejects):
        return rejects, []
    old_metadata = PodMetadata.of(request.old_object)
    still_rejecting, steps = [], []
    for match in rejects:
        if match.policy.ratchet and matches_rule(match.rule, old_metadata):
            steps.append(match.step(Outcome.PASSED, "the stored object matched already"))
        else:
            still_rejecting.append(match)
    return still_rejecting, steps


def _reject_verdicts(
    rejects: list[_Rule],
) -> tuple[tuple[Violation, ...], tuple[Violation, ...], tuple[str, ...]]:
    rejections = [
        (
            match,
            Violation(
                reason=Reason.REJECTED_BY_RULE,
                field="metadata",
                message=f"rejected by {match.text}",
                policy=match.policy.ref,
                rule=match.index,
            ),
        )
        for match in rejects
    ]
    return (
        tuple(violation for match, violation in rejections if match.is_enforced),
        tuple(violation for match, violation in rejections if not match.is_enforced),
        tuple(
            violation.message
            for match, violation in rejections
            if match.policy.enforcement is Enforcement.WARN
        ),
    )


def _rule_step(policy: MetadataPolicy, rule: int, outcome: Outcome, detail: str) -> Step:
    return Step(name="MetadataPolicy", outcome=outcome, policy=policy.ref, rule=rule, detail=detail)


def _idle_steps(idle_rules: list[_Rule]) -> list[Step]:
    """Trace rules that matched and set nothing: for their mode, or another rule's reject."""
    return [
        match.step(
            Outcome.UNCHANGED,
            match.with_mode("nothing set" if match.is_enforced else "would set its updates"),
        )
        for match in idle_rules
    ]


def _idle_warnings(idle_rules: list[_Rule]) -> list[str]:
    return [
        f"{match.text} would set labels or annotations (enforcement: warn)"
        for match in idle_rules
        if match.policy.enforcement is Enforcement.WARN
        and (
            match.rule.policy_action.updated_labels or match.rule.policy_action.updated_annotations
        )
    ]


def _in_rule_order(steps: list[Step]) -> tuple[Step, ...]:
    return tuple(sorted(steps, key=lambda s: (s.policy.name if s.policy else "", s.rule or 0)))


def _set_all(obj: Mapping[str, Any], setting: tuple[_Rule, ...]) -> MetadataResult:
    """Set the updates of all matching rules; the last rule in order wins a key."""
    if not setting:
        return MetadataResult(object=obj)
    merged, conflicts = _merged(setting)
    updated, operations = set_metadata(obj, merged)
    annotations = updated["metadata"].get("annotations") or {} if operations else {}
    if annotations_size(annotations) > MAX_ANNOTATIONS:
        return _too_long(obj, setting, conflicts)
    present = obj.get("metadata") or {}
    return MetadataResult(
        object=updated,
        operations=operations,
        warnings=conflicts,
        steps=tuple([_setter_step(match, merged, present) for match in setting]),
    )


# Rules compare by identity here, so that a key costs no comparison of policies.
@lru_cache(maxsize=1024)
def _merged(setting: tuple[_Rule, ...]) -> tuple[dict[str, dict[str, str]], tuple[str, ...]]:
    """Merge the updates of rules by field of the metadata, with a warning for each conflict."""
    updates = [Update(match.text, match.rule.policy_action) for match in setting]
    labels, annotations, conflicts = collect_updates(updates)
    return {"labels": labels, "annotations": annotations}, conflicts


def _too_long(
    obj: Mapping[str, Any], setting: tuple[_Rule, ...], warnings: tuple[str, ...]
) -> MetadataResult:
    """Refuse more annotations than the API server stores, as it would."""
    violation = Violation(
        reason=Reason.ANNOTATIONS_TOO_LONG,
        field="metadata.annotations",
        message=_TOO_LONG,
        policy=setting[-1].policy.ref,
        rule=setting[-1].index,
    )
    steps = tuple(match.step(Outcome.VIOLATED, _TOO_LONG) for match in setting)
    return MetadataResult(object=obj, violations=(violation,), steps=steps, warnings=warnings)


def _setter_step(
    match: _Rule, merged: Mapping[str, Mapping[str, str]], present: Mapping[str, Any]
) -> Step:
    """Trace which of a rule's keys changed, by this rule or by a later one with the same key."""
    action = match.rule.policy_action
    labels, annotations = present.get("labels") or {}, present.get("annotations") or {}
    return _changed_step(
        match,
        tuple([k for k in action.updated_labels if labels.get(k) != merged["labels"][k]]),
        tuple(
            [
                k
                for k in action.updated_annotations
                if annotations.get(k) != merged["annotations"][k]
            ]
        ),
    )


@lru_cache(maxsize=4096)
def _changed_step(match: _Rule, labels: tuple[str, ...], annotations: tuple[str, ...]) -> Step:
    changed = [f"label {key}" for key in labels] + [f"annotation {key}" for key in annotations]
    if not changed:
        return match.step(Outcome.UNCHANGED, "nothing to set")
    return match.step(Outcome.CHANGED, f"set {', '.join(changed)}")
