"""TraceRow: a step of the chain as a row, with its numbers and the revision that set them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.decision import Outcome, Reason
from portal.pages.decisions.reasons.amounts import Amount, charged_amounts, exceeded_amount
from portal.pages.decisions.words import violation_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from admission.explain.changes_behind import ChangeBehind
    from admission.explain.explanation import Explanation
    from admission.explain.origins import Origin
    from admission.models import AuditEvent
    from policies.models import PolicyRevision
    from portal.pages.decisions.reasons.links import PolicyLinks

_STEP_NAMES: Final = {
    "Authority": "Who enforces here",
    "LimitRangeDefaults": "LimitRange defaults",
    "LimitRangeCheck": "Limit ranges",
    "LimitedResources": "Limited resources",
    "MetadataPolicy": "Metadata policies",
    "MetadataPolicyRecheck": "Metadata policies, second check",
    "PodValidation": "Pod validation",
    "QOSAnnotation": "QoS class annotation",
    "ResourceQuota": "Quotas",
}
_RESULTS: Final[dict[str, str]] = {
    Outcome.CHANGED: "mutated",
    Outcome.ERROR: "denied",
    Outcome.PASSED: "passed",
    Outcome.UNCHANGED: "passed",
    Outcome.CHARGED: "charged",
}
_IDLE: Final = frozenset({"not-matched", "skipped"})
_BOUNDS: Final = {
    "max": "max",
    "min": "min",
    "maxLimitRequestRatio": "ratio",
    "limitRequestRatio": "ratio",
    "default": "default",
    "defaultRequest": "default request",
}
_DEFAULTS: Final = frozenset({"default", "default request"})
_BROKEN: Final = {
    Reason.MAX_CONSTRAINT: "max",
    Reason.MIN_CONSTRAINT: "min",
    Reason.RATIO_CONSTRAINT: "ratio",
}
_NOTE_OF_PLUGIN: Final = "LimitRanger plugin set: "


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBy:
    """A revision of a policy, its page, and the change that wrote it."""

    revision: PolicyRevision
    link: str
    behind: ChangeBehind | None = None
    words: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """One step in short words; ``result`` is a verdict, or a state of its own."""

    number: int
    name: str
    kind: str = ""
    link: str = ""
    rule: str = ""
    value: str = ""
    result: str
    amounts: Sequence[Amount] = ()
    violations: Sequence[Mapping[str, Any]] = ()
    detail: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    set_by: SetBy | None = None
    is_open: bool = False

    @property
    def is_idle(self) -> bool:
        """Whether the step had no effect, as its policy did not match."""
        return self.result in _IDLE

    @property
    def has_more(self) -> bool:
        """Whether the row opens to something that it does not show."""
        return bool(self.amounts or self.violations or self.numbers or self.set_by or self.detail)


def trace_rows(event: AuditEvent, found: Explanation, links: PolicyLinks) -> list[TraceRow]:
    """The recorded steps; the rows that decided are open."""
    reader = _TraceReader(event, found, links)
    return [reader.row(number, step) for number, step in enumerate(event.trace, start=1)]


class _TraceReader:
    """Finds what belongs to a step: violations, revisions, origins."""

    def __init__(self, event: AuditEvent, found: Explanation, links: PolicyLinks) -> None:
        self.event, self.links = event, links
        self.origins = {_key(each.revision): each for each in found.deciding}
        self.revisions = {_key(each): each for each in found.revisions}
        self.changes = found.changes

    def row(self, number: int, step: Mapping[str, Any]) -> TraceRow:
        policy = step.get("policy")
        outcome = str(step.get("outcome", ""))
        refusing = list(_of_step(step, self.event.violations))
        violations = refusing or list(_of_step(step, self.event.observed))
        is_violated = outcome == Outcome.VIOLATED
        amounts = _amounts(step, violations)
        result = _RESULTS.get(outcome, outcome)
        if is_violated:
            result = "denied" if refusing or not violations else "would-deny"
        value, detail = _value(step, violations), str(step.get("detail") or "")
        set_by = self._set_by(policy)
        return TraceRow(
            number=number,
            kind=policy["kind"] if policy else "",
            name=policy["name"] if policy else _step_name(step),
            link=self.links.policy(policy) if policy else "",
            rule=self._rule(step, violations),
            value=value,
            result=result,
            amounts=amounts,
            violations=[] if amounts or not is_violated else violations,
            detail="" if violations or value == detail else detail,
            numbers={} if amounts else step.get("numbers") or {},
            set_by=set_by,
            is_open=is_violated and bool(policy),
        )

    def _set_by(self, policy: Mapping[str, Any] | None) -> SetBy | None:
        if policy is None:
            return None
        key = (policy["kind"], policy["name"])
        origin: Origin | None = self.origins.get(key)
        revision = origin.revision if origin else self.revisions.get(key)
        if revision is None:
            return None
        words = changed_words(origin) if origin else ()
        link, behind = self.links.of_revision(revision), self.changes.get(revision.pk)
        return SetBy(revision=revision, link=link, behind=behind, words=words)

    def _rule(self, step: Mapping[str, Any], violations: Sequence[Mapping[str, Any]]) -> str:
        policy, rule = step.get("policy"), step.get("rule")
        if policy is None:
            return ""
        match policy["kind"]:
            case "LimitRange":
                return self._limits_rule(policy, rule, violations)
            case "ResourceQuota":
                return _quota_rule(step, violations)
        return "" if rule is None else f"rule {rule}"

    def _limits_rule(
        self, policy: Mapping[str, Any], rule: int | None, violations: Sequence[Mapping[str, Any]]
    ) -> str:
        revision = self.revisions.get((policy["kind"], policy["name"]))
        spec = ((revision.after if revision else None) or {}).get("spec") or {}
        items = spec.get("limits") or []
        if rule is None:
            return "defaults"
        item = items[rule] if rule < len(items) else {}
        kind = f" of {item['type']}" if item.get("type") else ""
        broken = dict.fromkeys(_broken_bound(each) for each in violations)
        if words := ", ".join(filter(None, broken)):
            return f"{words}{kind}"
        bounds = dict.fromkeys(_BOUNDS[name] for name in item if name in _BOUNDS)
        names = ", ".join(name for name in bounds if name not in _DEFAULTS)
        return f"{names or 'no bound'}{kind}"


def changed_words(origin: Origin) -> Sequence[str]:
    """What a revision changed; a first one set everything, which says nothing."""
    return origin.words if origin.revision.before else ()


def _key(revision: PolicyRevision) -> tuple[str, str]:
    return revision.kind, revision.name


def _of_step(
    step: Mapping[str, Any], violations: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """The violations that a step found; those of no policy belong to the step without one."""
    if step.get("outcome") != Outcome.VIOLATED:
        return
    policy, rule = step.get("policy"), step.get("rule")
    for violation in violations:
        if violation.get("policy") != policy:
            continue
        if policy is None or rule is None or violation.get("rule") == rule:
            yield violation


def _amounts(step: Mapping[str, Any], violations: Sequence[Mapping[str, Any]]) -> Sequence[Amount]:
    policy = step.get("policy")
    if not policy or policy["kind"] != "ResourceQuota":
        return ()
    exceeded = [exceeded_amount(each) for each in violations]
    if violations and all(exceeded):
        return [amount for amount in exceeded if amount]
    return charged_amounts(step.get("numbers") or {})


def _value(step: Mapping[str, Any], violations: Sequence[Mapping[str, Any]]) -> str:
    """What was compared, or set, in a few words."""
    detail = str(step.get("detail") or "")
    if violations:
        more = f", +{len(violations) - 1}" if len(violations) > 1 else ""
        words = violation_words(violations[0])
        resource = (violations[0].get("numbers") or {}).get("resource", "")
        is_quota = violations[0].get("reason") == Reason.EXCEEDED_QUOTA
        return (words.removeprefix(f"{resource} ") if is_quota else words) + more
    numbers = step.get("numbers") or {}
    if numbers and step.get("outcome") in {Outcome.CHARGED, Outcome.PASSED}:
        first = next(iter(numbers))
        more = f", +{len(numbers) - 1}" if len(numbers) > 1 else ""
        return f"{first} {numbers[first]}{more}"
    if step.get("policy") and step["policy"]["kind"] == "ResourceQuota":
        return ""
    return detail.removeprefix(_NOTE_OF_PLUGIN)


def _quota_rule(step: Mapping[str, Any], violations: Sequence[Mapping[str, Any]]) -> str:
    resources = [(each.get("numbers") or {}).get("resource", "") for each in violations]
    names = [name for name in resources if name] or list(step.get("numbers") or {})
    if names:
        return ", ".join(dict.fromkeys(names))
    detail = str(step.get("detail") or "")
    return detail.removeprefix("its ").removesuffix(" does not match")


def _broken_bound(violation: Mapping[str, Any]) -> str:
    bound = _BROKEN.get(violation.get("reason", ""))
    resource = (violation.get("numbers") or {}).get("resource", "")
    return f"{bound} {resource}".rstrip() if bound else ""


def _step_name(step: Mapping[str, Any]) -> str:
    name = str(step.get("name", ""))
    return _STEP_NAMES.get(name, name)
