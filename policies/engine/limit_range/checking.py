"""Checking pods and claims against LimitRanges, exactly; nothing is changed here.

Source: ``plugin/pkg/admission/limitranger/admission.go``, with the comparisons of its newest form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from policies.engine.decision import Outcome, Reason, Step, Violation
from policies.engine.errors import bracketed
from policies.engine.facts import once
from policies.engine.limit_range.manifest import CLAIM, CONTAINER, POD
from policies.engine.limit_range.ratio import exceeded_ratio
from policies.engine.pod import limit_range_totals, read_pod
from policies.engine.pod.reading import read_list, read_map
from policies.engine.request import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from policies.engine.pod import PodSpec
    from policies.engine.policy import LimitRange, LimitRangeItem
    from policies.engine.quantity import Quantity
    from policies.engine.request import AdmissionRequest
    from policies.engine.resource_list import ResourceList

STEP = "LimitRangeCheck"
_REQUESTS = "requests"
_LIMITS = "limits"
_LABELS = {
    Reason.MIN_CONSTRAINT: "minimum {name} usage per {type} is {enforced}",
    Reason.MAX_CONSTRAINT: "maximum {name} usage per {type} is {enforced}",
    Reason.RATIO_CONSTRAINT: "{name} max limit to request ratio per {type} is {enforced}",
}
_ACTED_ON = frozenset({"pods", "persistentvolumeclaims"})
_CLAIM_SPEC = "PersistentVolumeClaim.spec of type v1.PersistentVolumeClaimSpec"
_CLAIM_RESOURCES = "PersistentVolumeClaimSpec.spec.resources of type v1.VolumeResourceRequirements"
_CLAIM_REQUESTS = "VolumeResourceRequirements.spec.resources.requests"


class _Subject(NamedTuple):
    """What one item is held against: a container, a pod as a whole, or a claim.

    ``fields`` tells where a name of ``requests`` or ``limits`` stands in the object.
    """

    requests: ResourceList
    limits: ResourceList
    path: str
    own: frozenset[tuple[str, str]] = frozenset()

    def field(self, side: str, name: str) -> str:
        """Where the amount stands, or would stand."""
        path = "spec.resources" if (side, name) in self.own else self.path
        return f"{path}.{side}[{name}]"


class Finding(NamedTuple):
    """One broken constraint: the side of the amount at fault, and the text after the bound."""

    side: str
    text: str
    numbers: Mapping[str, str] = {}


class _Constraint(NamedTuple):
    """One bound of one item; ``test`` gets the bound, the request and the limit."""

    reason: Reason
    name: str
    enforced: Quantity
    test: Callable[[Quantity, Quantity | None, Quantity | None], Finding | None]


def acts_on(request: AdmissionRequest) -> bool:
    """Whether LimitRanges have a say: new pods, resizes, new and changed claims.

    Pod updates are left alone, since their resources cannot change; so is whatever is being
    deleted, or its finalizers could never be removed.
    """
    resource = request.resource
    if resource.group or resource.resource not in _ACTED_ON:
        return False
    if request.operation is Operation.UPDATE:
        is_pod = resource.resource == "pods"
        return request.sub_resource == ("resize" if is_pod else "") and not request.is_being_deleted
    return request.operation is Operation.CREATE and not request.sub_resource


def check(
    request: AdmissionRequest, ranges: Iterable[LimitRange], spec: PodSpec | None = None
) -> tuple[list[tuple[LimitRange, tuple[Violation, ...]]], list[Step]]:
    """Hold the request's object, as it stands, against every range, whatever its enforcement.

    ``spec`` is that of a pod, where it was read already. Returns the ranges that are violated,
    each with its violations in Kubernetes' order (items in order, containers in order, resources
    by name), and the trace. Raises DecodeError.
    """
    ranges = tuple(ranges)
    if not ranges or not acts_on(request):
        return [], [_step(each, None, Outcome.SKIPPED, "not asked about this") for each in ranges]
    offer = _offer(request, spec)
    find = _find if offer.is_claim else _find_again
    violated = []
    steps: list[Step] = []
    for limit_range in ranges:
        found: list[Violation] = []
        for rule in _rules(limit_range):
            violations = find(rule, offer)
            steps.append(_rule_step(rule, violations))
            found += violations or ()
        if not limit_range.items:
            steps.append(_step(limit_range, None, Outcome.NOT_MATCHED, "limits nothing"))
        if found:
            violated.append((limit_range, tuple(found)))
    return violated, steps


@dataclass(frozen=True, slots=True, eq=False)
class _Offer:
    """What an object offers to items of each type."""

    subjects: Mapping[str, tuple[_Subject, ...]]
    is_claim: bool = False


def _offer(request: AdmissionRequest, spec: PodSpec | None) -> _Offer:
    judged = request.object or {}
    if request.resource.resource != "pods":
        return _Offer({CLAIM: (_claim_subject(judged),)}, is_claim=True)
    return _pod_offer(spec or read_pod(judged))


@once
def _pod_offer(spec: PodSpec) -> _Offer:
    containers = [
        _Subject(c.requests, c.limits, f"{c.path}.resources") for c in spec.all_containers
    ]
    return _Offer({CONTAINER: tuple(containers), POD: (_pod_subject(spec),)})


def _claim_subject(claim: Mapping[str, Any]) -> _Subject:
    spec = read_map(claim, "spec", "spec", _CLAIM_SPEC)
    resources = read_map(spec, "resources", "spec.resources", _CLAIM_RESOURCES)
    requests = read_list(resources.get("requests"), "spec.resources.requests", _CLAIM_REQUESTS)
    return _Subject(requests, {}, "spec.resources")


def _pod_subject(spec: PodSpec) -> _Subject:
    """Sum the pod up; fields point at all containers unless the pod itself says an amount."""
    totals = limit_range_totals(spec)
    sides = ((_REQUESTS, spec.requests), (_LIMITS, spec.limits))
    own = frozenset(
        (side, name) for side, amounts in sides for name in amounts if name in {"cpu", "memory"}
    )
    return _Subject(totals.requests, totals.limits, "spec.containers[*].resources", own)


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """One item of a range, with what it checks and what is said when nothing is wrong."""

    limit_range: LimitRange
    index: int
    type: str
    constraints: tuple[_Constraint, ...]
    other_type: Step
    passed: Step


@once
def _rules(limit_range: LimitRange) -> tuple[_Rule, ...]:
    return tuple(
        _Rule(
            limit_range,
            index,
            item.type,
            tuple(_constraints(item)),
            other_type=_step(limit_range, index, Outcome.NOT_MATCHED, "is about another type"),
            passed=_step(limit_range, index, Outcome.PASSED),
        )
        for index, item in enumerate(limit_range.items)
    )


def _find(rule: _Rule, offer: _Offer) -> tuple[Violation, ...] | None:
    """Hold all subjects against one item; None if it is of another type."""
    subjects = offer.subjects.get(rule.type)
    if subjects is None:
        return None
    found = []
    for subject in subjects:
        requests, limits = subject.requests, subject.limits
        for constraint in rule.constraints:
            name = constraint.name
            finding = constraint.test(constraint.enforced, requests.get(name), limits.get(name))
            if finding is not None:
                found.append(_violation(rule, subject, constraint, finding))
    return tuple(found)


# The same few sets of containers meet the same rules over and over.
_find_again = lru_cache(maxsize=4096)(_find)


def _constraints(item: LimitRangeItem) -> list[_Constraint]:
    """List what an item checks: all minima, then all maxima, then all ratios, by name.

    Claims have no limits, so neither a limit's maximum nor a ratio.
    """
    is_claim = item.type == CLAIM
    ratios = {} if is_claim else item.max_limit_request_ratio
    groups = (
        (Reason.MIN_CONSTRAINT, item.min, min_constraint),
        (Reason.MAX_CONSTRAINT, item.max, max_request_constraint if is_claim else max_constraint),
        (Reason.RATIO_CONSTRAINT, ratios, ratio_constraint),
    )
    return [
        _Constraint(reason, name, bounds[name], test)
        for reason, bounds, test in groups
        for name in sorted(bounds)
    ]


def _violation(
    rule: _Rule, subject: _Subject, constraint: _Constraint, finding: Finding
) -> Violation:
    name, item_type = constraint.name, rule.type
    label = _LABELS[constraint.reason]
    amounts = {
        "enforced": constraint.enforced,
        "request": subject.requests.get(name),
        "limit": subject.limits.get(name),
    }
    texts = {role: str(amount) for role, amount in amounts.items() if amount is not None}
    return Violation(
        reason=constraint.reason,
        field=subject.field(finding.side, name),
        message=label.format(name=name, type=item_type, **texts) + finding.text,
        policy=rule.limit_range.ref,
        rule=rule.index,
        numbers={"resource": name, **texts, **finding.numbers},
    )


def min_constraint(
    enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> Finding | None:
    """A request must be there; it, and a limit if there is one, must reach the minimum."""
    if request is None:
        return Finding(_REQUESTS, ".  No request is specified")
    if request.nano < enforced.nano:
        return Finding(_REQUESTS, f", but request is {request}")
    if limit is not None and limit.nano < enforced.nano:
        return Finding(_LIMITS, f", but limit is {limit}")
    return None


def max_constraint(
    enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> Finding | None:
    """A limit must be there; it, and a request if there is one, must not pass the maximum."""
    if limit is None:
        return Finding(_LIMITS, ".  No limit is specified")
    if limit.nano > enforced.nano:
        return Finding(_LIMITS, f", but limit is {limit}")
    if request is not None and request.nano > enforced.nano:
        return Finding(_REQUESTS, f", but request is {request}")
    return None


def max_request_constraint(
    enforced: Quantity, request: Quantity | None, _limit: Quantity | None
) -> Finding | None:
    """A claim's request must be there and must not pass the maximum."""
    if request is None:
        return Finding(_REQUESTS, ".  No request is specified")
    if request.nano > enforced.nano:
        return Finding(_REQUESTS, f", but request is {request}")
    return None


def ratio_constraint(
    enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> Finding | None:
    """Both must be there and not zero, and limit/request must not pass the ratio."""
    if request is None or not request.nano:
        return Finding(_REQUESTS, ", but no request is specified or request is 0")
    if limit is None or not limit.nano:
        return Finding(_LIMITS, ", but no limit is specified or limit is 0")
    ratio = exceeded_ratio(request, limit, enforced)
    if ratio is None:
        return None
    return Finding(_LIMITS, f", but provided ratio is {ratio}", {"ratio": ratio})


def _rule_step(rule: _Rule, violations: tuple[Violation, ...] | None) -> Step:
    if violations:
        detail = bracketed(violation.message for violation in violations)
        return _step(rule.limit_range, rule.index, Outcome.VIOLATED, detail)
    return rule.other_type if violations is None else rule.passed


def _step(limit_range: LimitRange, rule: int | None, outcome: Outcome, detail: str = "") -> Step:
    return Step(name=STEP, outcome=outcome, policy=limit_range.ref, rule=rule, detail=detail)
