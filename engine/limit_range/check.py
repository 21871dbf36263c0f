"""Check pods and claims against LimitRanges, exactly; nothing is changed here.

An object is held against the tightest bounds of all ranges first; only of what breaks one of them
each range is asked. Source: ``plugin/pkg/admission/limitranger/admission.go``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.bounds import Collected, bounded
from engine.cache import once
from engine.decision import Outcome, Step, Violation
from engine.limit_range.constraints import (
    Constraint,
    constraints_of,
    tightest,
)
from engine.limit_range.manifest import CLAIM, CONTAINER, POD
from engine.limit_range.offer import BoundedItem, Offer, offer_of
from engine.request import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.pod import PodSpec
    from engine.policy import LimitRange
    from engine.quantity import Quantity
    from engine.request import AdmissionRequest

    Violated = list[tuple[LimitRange, tuple[Violation, ...]]]
    _Asked = tuple[Quantity | None, Quantity | None, int]

STEP = "LimitRangeCheck"
_KEPT: Final = 256  # sets of ranges; they grow with what is stored, not with what is asked
_AT_ONCE: Final = 256  # subjects between two pauses
_LONGEST_DETAIL: Final = 2048  # bytes of what the trace has of one item
_ACTED_ON = frozenset({"pods", "persistentvolumeclaims"})


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
    request: AdmissionRequest,
    ranges: Iterable[LimitRange] | CompiledRanges,
    spec: PodSpec | None = None,
    *,
    into: Collected | None = None,
) -> tuple[Violated, list[Step]]:
    """Hold the request's object, as it stands, against every range, whatever its enforcement.

    ``spec`` is that of a pod, where it was read already. Returns the ranges that are violated,
    each with its violations in Kubernetes' order (items in order, containers in order, resources
    by name), and the trace. Of many violations those are given that ``into`` keeps; it counts the
    others. Raises DecodeError, and what the request's ``pause`` does.
    """
    compiled = ranges if isinstance(ranges, CompiledRanges) else compile_ranges(ranges)
    if not compiled.ranges:
        return [], []
    if not acts_on(request):
        return [], list(compiled.skipped)
    offer = offer_of(request, spec)
    if compiled in offer.passed:
        return [], list(compiled.unbroken[offer.is_claim])
    broken = _find_broken(compiled, offer, request.pause)
    if not broken:
        offer.note(compiled)
        return [], list(compiled.unbroken[offer.is_claim])
    return _ask_each(compiled, offer, broken, _Check(into or Collected(), request.pause))


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """One item of a range, with what it checks and what is said when nothing is wrong."""

    limit_range: LimitRange
    index: int
    type: str
    constraints: tuple[Constraint, ...]
    other_type: Step
    passed: Step


@once
def _rules(limit_range: LimitRange) -> tuple[_Rule, ...]:
    return tuple(
        _Rule(
            limit_range,
            index,
            item.type,
            tuple(constraints_of(item)),
            other_type=_step(limit_range, index, Outcome.NOT_MATCHED, "is about another type"),
            passed=_step(limit_range, index, Outcome.PASSED),
        )
        for index, item in enumerate(limit_range.items)
    )


class _Ranges:
    """The ranges of a namespace; equal to the very same ones alone."""

    __slots__ = ("_key", "ranges")

    def __init__(self, ranges: tuple[LimitRange, ...]) -> None:
        self.ranges = ranges
        self._key = tuple(map(id, ranges))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ranges) and self._key == other._key


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRanges:
    """Ranges, the tightest bounds of them all, and the trace of a pod or claim that breaks none."""

    ranges: tuple[LimitRange, ...]
    tightest: Mapping[str, tuple[Constraint, ...]]
    unbroken: tuple[tuple[Step, ...], tuple[Step, ...]]
    skipped: tuple[Step, ...]


def compile_ranges(ranges: Iterable[LimitRange]) -> CompiledRanges:
    """Find the tightest bounds of these ranges, once for the very same ones."""
    return _compiled(_Ranges(tuple(ranges)))


@lru_cache(_KEPT)
def _compiled(asked: _Ranges) -> CompiledRanges:
    ranges = asked.ranges
    items = [item for each in ranges for item in each.items]
    types = ((CONTAINER, POD), (CLAIM,))
    unbroken = tuple([tuple(_unbroken(ranges, known)) for known in types])
    skipped = [_step(each, None, Outcome.SKIPPED, "not asked about this") for each in ranges]
    return CompiledRanges(ranges, tightest(items), (unbroken[0], unbroken[1]), tuple(skipped))


def _unbroken(ranges: Iterable[LimitRange], types: tuple[str, ...]) -> Iterator[Step]:
    for limit_range in ranges:
        for rule in _rules(limit_range):
            yield rule.passed if rule.type in types else rule.other_type
        if not limit_range.items:
            yield _nothing_limited(limit_range)


class _Broken:
    """The subjects of one type that break a tightest bound, and what they ask for."""

    __slots__ = ("_amounts", "_distinct", "_names", "subjects")

    def __init__(self, subjects: list[BoundedItem], constraints: Iterable[Constraint]) -> None:
        self.subjects = subjects
        self._names = sorted({constraint.name for constraint in constraints})
        self._amounts: dict[str, list[_Asked]] = {}
        self._distinct: list[BoundedItem] | None = None

    def distinct(self) -> list[BoundedItem]:
        """The first of all subjects that ask for the very same amounts."""
        if self._distinct is None:
            found: dict[tuple[int, ...], BoundedItem] = {}
            for each in self.subjects:
                asked = (each.requests, each.limits)
                key = tuple([id(side.get(name)) for side in asked for name in self._names])
                found.setdefault(key, each)
            self._distinct = list(found.values())
        return self._distinct

    def number(self, constraint: Constraint) -> int:
        """How many subjects break a bound."""
        fault, enforced = constraint.fault, constraint.enforced
        return sum(
            [
                number
                for request, limit, number in self._asked(constraint.name)
                if fault(enforced, request, limit) is not None
            ]
        )

    def _asked(self, name: str) -> list[_Asked]:
        """What is asked of one resource, and how often; the same text is the same value."""
        if name not in self._amounts:
            found: dict[tuple[int, int], _Asked] = {}
            for each in self.subjects:
                request, limit = each.requests.get(name), each.limits.get(name)
                key = (id(request), id(limit))
                known = found.get(key)
                found[key] = (request, limit, known[2] + 1 if known else 1)
            self._amounts[name] = list(found.values())
        return self._amounts[name]


def _find_broken(
    compiled: CompiledRanges, offer: Offer, pause: Callable[[], None] | None
) -> dict[str, _Broken]:
    """Hold what is offered against the tightest bounds of each type."""
    found = {}
    for item_type, constraints in compiled.tightest.items():
        broken = [
            subject
            for subject in _paused(offer.subjects.get(item_type, ()), pause)
            if _breaks(subject, constraints)
        ]
        if broken:
            found[item_type] = _Broken(broken, constraints)
    return found


def _breaks(subject: BoundedItem, constraints: Iterable[Constraint]) -> bool:
    requests, limits = subject.requests, subject.limits
    for each in constraints:
        name = each.name
        if each.fault(each.enforced, requests.get(name), limits.get(name)) is not None:
            return True
    return False


def _paused(
    subjects: Iterable[BoundedItem], pause: Callable[[], None] | None
) -> Iterable[BoundedItem]:
    return subjects if pause is None else _with_pauses(subjects, pause)


def _with_pauses(
    subjects: Iterable[BoundedItem], pause: Callable[[], None]
) -> Iterator[BoundedItem]:
    for position, subject in enumerate(subjects):
        if not position % _AT_ONCE:
            pause()
        yield subject


class _Check(NamedTuple):
    """Where violations go, and what is called now and then."""

    into: Collected
    pause: Callable[[], None] | None


def _ask_each(
    compiled: CompiledRanges, offer: Offer, broken: Mapping[str, _Broken], search: _Check
) -> tuple[Violated, list[Step]]:
    """Ask each item of each range about what breaks the tightest bounds."""
    violated: Violated = []
    steps: list[Step] = []
    for limit_range in compiled.ranges:
        found: list[Violation] = []
        for rule in _rules(limit_range):
            if rule.type in broken:
                violations, number = _find(rule, broken[rule.type], search)
                found += violations
                steps.append(_rule_step(rule, violations, number))
            else:
                steps.append(rule.passed if rule.type in offer.subjects else rule.other_type)
        if not limit_range.items:
            steps.append(_nothing_limited(limit_range))
        if found:
            violated.append((limit_range, tuple(found)))
    return violated, steps


def _find(rule: _Rule, broken: _Broken, search: _Check) -> tuple[list[Violation], int]:
    """Hold subjects against one item: the violations to be kept, and how many there are."""
    into = search.into
    found: list[Violation] = []
    for subject in _paused(broken.subjects, search.pause):
        if not into.lists_all:
            break
        found += _violations(rule, subject, into)
    if into.lists_all:
        return found, len(found)
    # From here on only a text that was not seen yet is worth finding: equal amounts have equal
    # texts, so that one of each will do. All others are counted.
    for subject in _paused(broken.distinct(), search.pause):
        if into.is_full:
            break
        found += _violations(rule, subject, into)
    return found, _count(rule, broken, found, search)


def _violations(rule: _Rule, subject: BoundedItem, into: Collected) -> Iterator[Violation]:
    """Keep what is wanted of what one subject breaks of an item."""
    requests, limits = subject.requests, subject.limits
    for constraint in rule.constraints:
        request, limit = requests.get(constraint.name), limits.get(constraint.name)
        fault = constraint.fault(constraint.enforced, request, limit)
        if fault is None:
            continue
        message, numbers = constraint.worded(fault, request, limit)
        if into.wants(message):
            violation = Violation(
                reason=constraint.reason,
                field=subject.field(fault.side, constraint.name),
                message=message,
                policy=rule.limit_range.ref,
                rule=rule.index,
                numbers=numbers,
            )
            into.keep(violation, message)
            yield violation


def _count(rule: _Rule, broken: _Broken, found: list[Violation], search: _Check) -> int:
    """Count what an item found beside what is kept of it."""
    kept = Counter([violation.reason for violation in found])
    total = 0
    numbers: Counter[Any] = Counter()
    for constraint in rule.constraints:
        if search.pause is not None:
            search.pause()
        numbers[constraint.reason] += broken.number(constraint)
    for reason, number in numbers.items():
        search.into.count(reason, number - kept[reason])
        total += number
    return total


def _rule_step(rule: _Rule, violations: list[Violation], number: int) -> Step:
    if not number:
        return rule.passed
    messages = [violation.message for violation in violations]
    is_cut = number > len(violations)
    detail = (
        bounded(messages, _LONGEST_DETAIL, is_cut=is_cut) if messages else f"{number} violations"
    )
    return _step(rule.limit_range, rule.index, Outcome.VIOLATED, detail)


def _nothing_limited(limit_range: LimitRange) -> Step:
    return _step(limit_range, None, Outcome.NOT_MATCHED, "limits nothing")


def _step(limit_range: LimitRange, rule: int | None, outcome: Outcome, detail: str = "") -> Step:
    return Step(name=STEP, outcome=outcome, policy=limit_range.ref, rule=rule, detail=detail)
