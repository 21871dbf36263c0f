"""Check subjects of an Offer by CompiledRanges: items of ranges, breaking subjects, violations.

The object is first compared with the tightest bounds of all ranges together; only if it breaks one,
with each range by itself. Source: ``plugin/pkg/admission/limitranger/admission.go``.
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
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from engine.pod import PodSpec
    from engine.policy import LimitRange
    from engine.quantity import Quantity
    from engine.request import AdmissionRequest

    Violated = list[tuple[LimitRange, tuple[Violation, ...]]]
    _CountedPair = tuple[Quantity | None, Quantity | None, int]

STEP = "LimitRangeCheck"
_KEPT_RANGES: Final = 256  # sets of ranges: their number follows the namespaces, not the requests
_SUBJECTS_AT_ONCE: Final = 256  # subjects between two calls of ``pause``
_LONGEST_DETAIL: Final = 2048  # bytes of a step's detail
_ACTED_ON = frozenset({"pods", "persistentvolumeclaims"})


def acts_on(request: AdmissionRequest) -> bool:
    """Whether LimitRanges check the request: new pods, resizes, new and changed claims.

    Updates of pods pass, since they cannot change resources, and so do updates of objects that are
    being deleted, whose finalizers must stay removable.
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
    """Check the request's object, as it stands, against every range, whatever its enforcement.

    ``spec`` is that of a pod, where it was read already. Returns the violated ranges, each with its
    violations in Kubernetes' order (items, containers, resources by name), and the trace. ``into``
    decides which of many violations are kept, and counts the others. Raises DecodeError, and
    whatever the request's ``pause`` raises.
    """
    compiled = ranges if isinstance(ranges, CompiledRanges) else compile_ranges(ranges)
    if not compiled.ranges:
        return [], []
    if not acts_on(request):
        return [], list(compiled.skipped)
    offer = offer_of(request, spec)
    # Pods of one template share an offer: that the last ones passed is known.
    if compiled in offer.passed:
        return [], list(compiled.unbroken[offer.is_claim])
    # One comparison with the tightest bounds settles nearly all objects, however many ranges.
    breaking = _find_breaking(compiled, offer, request.pause)
    if not breaking:
        offer.note(compiled)
        return [], list(compiled.unbroken[offer.is_claim])
    search = _Check(into or Collected(), request.pause)
    return _check_each(compiled.ranges, offer.subjects, breaking, search)


@dataclass(frozen=True, slots=True, eq=False)
class _RangeItem:
    """One item of a range: its constraints, and the steps of the trace when it is not violated."""

    limit_range: LimitRange
    index: int
    type: str
    constraints: tuple[Constraint, ...]
    other_type: Step
    passed: Step


@once
def _range_items(limit_range: LimitRange) -> tuple[_RangeItem, ...]:
    return tuple(
        _RangeItem(
            limit_range,
            index,
            item.type,
            tuple(constraints_of(item)),
            other_type=_step(limit_range, index, Outcome.NOT_MATCHED, "is about another type"),
            passed=_step(limit_range, index, Outcome.PASSED),
        )
        for index, item in enumerate(limit_range.items)
    )


class _RangesKey:
    """Ranges as a cache key: equal only to the very same objects, which it keeps alive."""

    __slots__ = ("_range_ids", "ranges")

    def __init__(self, ranges: tuple[LimitRange, ...]) -> None:
        self.ranges = ranges
        # Comparing ranges by value would cost more than checking a pod.
        self._range_ids = tuple(map(id, ranges))

    def __hash__(self) -> int:
        return hash(self._range_ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RangesKey) and self._range_ids == other._range_ids


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRanges:
    """Ranges, their tightest bounds, and the finished trace of a pod or claim that breaks none."""

    ranges: tuple[LimitRange, ...]
    tightest: Mapping[str, tuple[Constraint, ...]]
    unbroken: tuple[tuple[Step, ...], tuple[Step, ...]]
    skipped: tuple[Step, ...]


def compile_ranges(ranges: Iterable[LimitRange]) -> CompiledRanges:
    """Compile ranges, once for the very same objects."""
    return _compiled(_RangesKey(tuple(ranges)))


@lru_cache(_KEPT_RANGES)
def _compiled(ranges_key: _RangesKey) -> CompiledRanges:
    ranges = ranges_key.ranges
    items = [item for each in ranges for item in each.items]
    search = _Check(Collected(), None)
    of_pod, of_claim = (
        tuple(_check_each(ranges, types, {}, search)[1]) for types in ((CONTAINER, POD), (CLAIM,))
    )
    skipped = [_step(each, None, Outcome.SKIPPED, "does not check this request") for each in ranges]
    return CompiledRanges(ranges, tightest(items), (of_pod, of_claim), tuple(skipped))


class _Breaking:
    """The subjects of one type that break a tightest bound, grouped by their amounts."""

    __slots__ = ("_distinct", "_names", "_pairs", "subjects")

    def __init__(self, subjects: list[BoundedItem], constraints: Iterable[Constraint]) -> None:
        self.subjects = subjects
        self._names = sorted({constraint.name for constraint in constraints})
        self._pairs: dict[str, list[_CountedPair]] = {}
        self._distinct: list[BoundedItem] | None = None

    def distinct(self) -> list[BoundedItem]:
        """Return one subject for each combination of amounts."""
        if self._distinct is None:
            by_amounts: dict[tuple[int, ...], BoundedItem] = {}
            for subject in self.subjects:
                sides = (subject.requests, subject.limits)
                # Equal texts parse to the same cached quantity; a cache miss costs only time.
                key = tuple([id(side.get(name)) for side in sides for name in self._names])
                by_amounts.setdefault(key, subject)
            self._distinct = list(by_amounts.values())
        return self._distinct

    def number(self, constraint: Constraint) -> int:
        """Count the subjects that break a bound."""
        fault, enforced = constraint.fault, constraint.enforced
        return sum(
            [
                number
                for request, limit, number in self._grouped(constraint.name)
                if fault(enforced, request, limit) is not None
            ]
        )

    def _grouped(self, name: str) -> list[_CountedPair]:
        """Group the amounts of one resource; equal texts are the same cached object."""
        if name not in self._pairs:
            pairs: dict[tuple[int, int], _CountedPair] = {}
            for subject in self.subjects:
                request, limit = subject.requests.get(name), subject.limits.get(name)
                key = (id(request), id(limit))
                counted = pairs.get(key)
                pairs[key] = (request, limit, counted[2] + 1 if counted else 1)
            self._pairs[name] = list(pairs.values())
        return self._pairs[name]


def _find_breaking(
    compiled: CompiledRanges, offer: Offer, pause: Callable[[], None] | None
) -> dict[str, _Breaking]:
    """Find the subjects of each type that break one of its tightest bounds."""
    breaking = {}
    for item_type, constraints in compiled.tightest.items():
        subjects = [
            subject
            for subject in _paused(offer.subjects.get(item_type, ()), pause)
            if _breaks(subject, constraints)
        ]
        if subjects:
            breaking[item_type] = _Breaking(subjects, constraints)
    return breaking


def _breaks(subject: BoundedItem, constraints: Iterable[Constraint]) -> bool:
    requests, limits = subject.requests, subject.limits
    for bound in constraints:
        name = bound.name
        if bound.fault(bound.enforced, requests.get(name), limits.get(name)) is not None:
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
        if not position % _SUBJECTS_AT_ONCE:
            pause()
        yield subject


class _Check(NamedTuple):
    """The collector of violations, and the ``pause`` of the request."""

    into: Collected
    pause: Callable[[], None] | None


def _check_each(
    ranges: Iterable[LimitRange],
    item_types: Container[str],
    breaking: Mapping[str, _Breaking],
    search: _Check,
) -> tuple[Violated, list[Step]]:
    """Check the broken subjects of an object with these types against each item of each range."""
    violated: Violated = []
    steps: list[Step] = []
    for limit_range in ranges:
        violations: list[Violation] = []
        for item in _range_items(limit_range):
            if item.type in breaking:
                kept, number = _find(item, breaking[item.type], search)
                violations += kept
                steps.append(_item_step(item, kept, number))
            else:
                steps.append(item.passed if item.type in item_types else item.other_type)
        if not limit_range.items:
            steps.append(_step(limit_range, None, Outcome.NOT_MATCHED, "limits nothing"))
        if violations:
            violated.append((limit_range, tuple(violations)))
    return violated, steps


def _find(item: _RangeItem, breaking: _Breaking, search: _Check) -> tuple[list[Violation], int]:
    """Check subjects against one item: the violations that are kept, and the number of all."""
    into = search.into
    found: list[Violation] = []
    for subject in _paused(breaking.subjects, search.pause):
        if not into.lists_all:
            break
        found += _violations(item, subject, into)
    if into.lists_all:
        return found, len(found)
    # The list is full: from here on only new texts matter, and equal amounts have equal texts, so
    # that one subject of each combination is enough. All others are counted.
    for subject in _paused(breaking.distinct(), search.pause):
        if into.is_full:
            break
        found += _violations(item, subject, into)
    return found, _count(item, breaking, found, search)


def _violations(item: _RangeItem, subject: BoundedItem, into: Collected) -> Iterator[Violation]:
    """Collect and yield the violations of one subject that are wanted."""
    requests, limits = subject.requests, subject.limits
    for constraint in item.constraints:
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
                policy=item.limit_range.ref,
                rule=item.index,
                numbers=numbers,
            )
            into.keep(violation, message)
            yield violation


def _count(item: _RangeItem, breaking: _Breaking, found: list[Violation], search: _Check) -> int:
    """Count all violations of an item, and those that are not kept in the collector."""
    kept_by_reason = Counter([violation.reason for violation in found])
    total = 0
    by_reason: Counter[Any] = Counter()
    for constraint in item.constraints:
        if search.pause is not None:
            search.pause()
        by_reason[constraint.reason] += breaking.number(constraint)
    for reason, number in by_reason.items():
        search.into.count(reason, number - kept_by_reason[reason])
        total += number
    return total


def _item_step(item: _RangeItem, violations: list[Violation], number: int) -> Step:
    if not number:
        return item.passed
    worded = [violation.message for violation in violations]
    is_cut = number > len(violations)
    detail = bounded(worded, _LONGEST_DETAIL, is_cut=is_cut) if worded else f"{number} violations"
    return _step(item.limit_range, item.index, Outcome.VIOLATED, detail)


def _step(limit_range: LimitRange, rule: int | None, outcome: Outcome, detail: str = "") -> Step:
    return Step(name=STEP, outcome=outcome, policy=limit_range.ref, rule=rule, detail=detail)
