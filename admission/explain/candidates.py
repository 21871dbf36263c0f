"""FieldChanges guessed from a Violation: amounts set to bound or ratio, other classes, labels.

The bounds come from the violations themselves; the engine decides whether a change helps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from admission.explain.object_diff import FieldChange, value_at
from engine.decision import Reason
from engine.patch import ABSENT
from engine.pod import CONTAINER_LISTS
from engine.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from admission.explain.object_diff import Token
    from engine.decision import Violation
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest
    from engine.selector import LabelSelector

_RESOURCES_PATH: Final = re.compile(
    rf"spec\.(?:(?P<group>{'|'.join(CONTAINER_LISTS)})\[(?P<at>\d+)\]\.)?resources"
    r"(?:\.(?P<side>requests|limits)(?:\[(?P<name>.+)\])?)?"
)
_NANO: Final = 10**9
_MILLI: Final = 10**6
_MEBI: Final = 2**20 * _NANO
_SMALL_AMOUNTS: Final = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "1Gi"}
MOST_CLASSES: Final = 20
ANY: Final = "example"
"""A placeholder for a value that only the user knows."""


class _GuessContext(NamedTuple):
    """The input of a guess beside the violation."""

    obj: Mapping[str, Any]
    policies: PolicySet
    classes: Sequence[str]


def candidates(
    violations: Iterable[Violation],
    request: AdmissionRequest,
    policies: PolicySet,
    classes: Sequence[str],
) -> Iterator[FieldChange]:
    """Changes that may remove one of the violations, the likeliest first."""
    context = _GuessContext(request.object or {}, policies, classes)
    for violation in violations:
        guess = _GUESSES.get(violation.reason)
        if guess is not None:
            yield from guess(context, violation)


def _resources_paths(obj: Mapping[str, Any]) -> Iterator[tuple[Token, ...]]:
    """The paths of ``resources`` in a pod."""
    for container_list in CONTAINER_LISTS:
        containers = value_at(obj, ("spec", container_list))
        for position, _ in enumerate(containers if isinstance(containers, list) else ()):
            yield ("spec", container_list, position, "resources")


def _set_amount(
    obj: Mapping[str, Any], path: tuple[Token, ...], amount: Quantity
) -> Iterator[FieldChange]:
    amount_before = value_at(obj, path)
    new = amount.canonical()
    if amount.nano >= 0 and _amount_of(amount_before) != amount:
        yield FieldChange(path=path, old=amount_before, new=new)


def _amount_of(given: Any) -> Quantity | None:
    try:
        return None if given is ABSENT else Quantity.parse_json(given)
    except QuantityError:
        return None


def _to_bound(context: _GuessContext, violation: Violation) -> Iterator[FieldChange]:
    """Set an amount to its bound; of a sum over containers, change one of them as far as needed."""
    obj, numbers, resource = context.obj, violation.numbers, violation.numbers["resource"]
    side = "limits" if ".limits[" in violation.field else "requests"
    bound = Quantity.parse(numbers["enforced"])
    placed = _RESOURCES_PATH.fullmatch(violation.field)
    if placed:
        yield from _set_amount(obj, (*_resources_path(placed), side, resource), bound)
        return
    total = Quantity.parse(numbers.get(side.removesuffix("s"), "0"))
    yield from _shifted_amounts(obj, (side, resource), bound.nano - total.nano)


def _shifted_amounts(
    obj: Mapping[str, Any], side_and_resource: tuple[str, str], shift: int
) -> Iterator[FieldChange]:
    """Change the amount of one container after the other by the difference."""
    side, resource = side_and_resource
    for place in _resources_paths(obj):
        path = (*place, side, resource)
        amount = _amount_of(value_at(obj, path))
        if amount is None and shift < 0:
            continue
        nano = (amount.nano if amount else 0) + shift
        like = amount or Quantity.parse(_SMALL_AMOUNTS.get(resource, "1"))
        if nano > 0:
            yield from _set_amount(obj, path, _rounded(nano, like, up=shift > 0))


def _rounded(nano: int, like: Quantity, *, up: bool) -> Quantity:
    """A round amount next to this one, up or down: thousandths of a CPU, whole MiB."""
    units = (_MEBI, _NANO) if like.nano >= _MEBI else (_MILLI,)
    for unit in units:
        whole = -(-nano // unit) * unit if up else nano // unit * unit
        if whole > 0:
            return Quantity(whole, like.format)
    return Quantity(nano, like.format)


def _to_ratio(context: _GuessContext, violation: Violation) -> Iterator[FieldChange]:
    """Raise the request, or lower the limit, to the allowed ratio."""
    obj, numbers, resource = context.obj, violation.numbers, violation.numbers["resource"]
    ratio = Quantity.parse(numbers["enforced"]).nano
    request, limit = (_amount_of(numbers.get(side, ABSENT)) for side in ("request", "limit"))
    placed = _RESOURCES_PATH.fullmatch(violation.field)
    if limit and ratio > 0:
        least = _rounded(-(-limit.nano * _NANO // ratio), limit, up=True)
        yield from _reach_amount(obj, placed, ("requests", resource), request, least)
    if request and request.nano > 0:
        most = _rounded(request.nano * ratio // _NANO, request, up=False)
        yield from _reach_amount(obj, placed, ("limits", resource), limit, most)


def _reach_amount(
    obj: Mapping[str, Any],
    placed: re.Match[str] | None,
    where: tuple[str, str],
    total: Quantity | None,
    wanted: Quantity,
) -> Iterator[FieldChange]:
    if placed:
        yield from _set_amount(obj, (*_resources_path(placed), *where), wanted)
    else:
        yield from _shifted_amounts(obj, where, wanted.nano - (total.nano if total else 0))


def _to_fit(context: _GuessContext, violation: Violation) -> Iterator[FieldChange]:
    """Lower a request to what the quota has left: of one container, the largest that fits."""
    obj, numbers = context.obj, violation.numbers
    free = Quantity.parse(numbers["hard"]).nano - Quantity.parse(numbers["used"]).nano
    excess = Quantity.parse(numbers["requested"]).nano - free
    side, name = _quota_side(numbers["resource"])
    claim = ("spec", "resources", side, name)
    if value_at(obj, claim) is not ABSENT:
        claimed = _amount_of(value_at(obj, claim))
        if claimed and claimed.nano > excess:
            yield from _set_amount(obj, claim, _rounded(claimed.nano - excess, claimed, up=False))
    yield from _shifted_amounts(obj, (side, name), -excess)
    # Another class escapes a quota whose scopes select some classes only.
    name = violation.policy.name if violation.policy else ""
    quota = next((each for each in context.policies.resource_quotas if each.name == name), None)
    selector = (quota.scope_selector or ()) if quota else ()
    if any(scope.scope_name == "PriorityClass" for scope in selector):
        yield from _to_other_class(context, violation)


def _quota_side(resource: str) -> tuple[str, str]:
    """``limits.cpu`` is a limit, ``requests.cpu`` and ``cpu`` are requests."""
    side, dot, name = resource.partition(".")
    return (side, name) if dot and side in {"requests", "limits"} else ("requests", resource)


def _to_other_class(context: _GuessContext, _violation: Violation) -> Iterator[FieldChange]:
    """Every other priority class, and none."""
    path = ("spec", "priorityClassName")
    priority_class = value_at(context.obj, path)
    for other_class in context.classes[:MOST_CLASSES]:
        if other_class != priority_class:
            yield FieldChange(path=path, old=priority_class, new=other_class)
    if priority_class is not ABSENT:
        yield FieldChange(path=path, old=priority_class, new=ABSENT)


def _to_specify(context: _GuessContext, violation: Violation) -> Iterator[FieldChange]:
    """Add an amount where none is given: that of the other side, else a small one."""
    side, resource = _quota_side(violation.numbers["resource"])
    other_side = "limits" if side == "requests" else "requests"
    least_amounts = [
        item.min[resource]
        for limit_range in context.policies.limit_ranges
        for item in limit_range.items
        if item.type == "Container" and resource in item.min
    ]
    small_amount = max(least_amounts, default=Quantity.parse(_SMALL_AMOUNTS.get(resource, "1")))
    obj = context.obj
    for place in _resources_paths(obj):
        if value_at(obj, (*place, side, resource)) is ABSENT:
            other_amount = _amount_of(value_at(obj, (*place, other_side, resource)))
            yield from _set_amount(obj, (*place, side, resource), other_amount or small_amount)


def _to_balance(context: _GuessContext, violation: Violation) -> Iterator[FieldChange]:
    """Make a request and its limit equal, where the request is above the limit."""
    placed = _RESOURCES_PATH.match(violation.field)
    if placed is None:
        return
    obj, place = context.obj, _resources_path(placed)
    limits = value_at(obj, (*place, "limits"))
    for resource in limits if isinstance(limits, dict) else ():
        limit = _amount_of(limits[resource])
        request = _amount_of(value_at(obj, (*place, "requests", resource)))
        if limit and request and request != limit:
            yield from _set_amount(obj, (*place, "requests", resource), limit)
            yield from _set_amount(obj, (*place, "limits", resource), request)


def _resources_path(placed: re.Match[str]) -> tuple[Token, ...]:
    if placed["group"]:
        return ("spec", placed["group"], int(placed["at"]), "resources")
    return ("spec", "resources")


def _to_label(context: _GuessContext, violation: Violation) -> Iterator[FieldChange]:
    """Change labels or annotations so that the rule that refused does not match any more."""
    name = violation.policy.name if violation.policy else ""
    policy = next((each for each in context.policies.metadata_policies if each.name == name), None)
    if policy is None or violation.rule is None:
        return
    predicate = policy.rules[violation.rule].policy_predicate
    if predicate.label_selector is not None:
        yield from _unmatched(context.obj, "labels", predicate.label_selector)
    if predicate.annotation_selector is not None:
        yield from _unmatched(context.obj, "annotations", predicate.annotation_selector)


def _unmatched(obj: Mapping[str, Any], part: str, selector: LabelSelector) -> Iterator[FieldChange]:
    """Break one entry of a selector: all have to hold for a match."""
    for requirement in selector.match_expressions:
        path = ("metadata", part, requirement.key)
        old = value_at(obj, path)
        if requirement.operator == "DoesNotExist":
            yield FieldChange(path=path, old=old, new=ANY, is_free=True)
        elif requirement.operator == "NotIn":
            for allowed_value in requirement.values:
                yield FieldChange(path=path, old=old, new=allowed_value)
        elif old is not ABSENT:
            yield FieldChange(path=path, old=old, new=ABSENT)
            yield FieldChange(path=path, old=old, new=ANY, is_free=True)
    for label in selector.match_labels:
        path = ("metadata", part, label)
        yield FieldChange(path=path, old=value_at(obj, path), new=ABSENT)
        yield FieldChange(path=path, old=value_at(obj, path), new=ANY, is_free=True)


_GUESSES: Final[dict[Reason, Callable[[_GuessContext, Violation], Iterator[FieldChange]]]] = {
    Reason.MIN_CONSTRAINT: _to_bound,
    Reason.MAX_CONSTRAINT: _to_bound,
    Reason.RATIO_CONSTRAINT: _to_ratio,
    Reason.EXCEEDED_QUOTA: _to_fit,
    Reason.INSUFFICIENT_QUOTA: _to_other_class,
    Reason.UNCOVERED_SCOPE: _to_other_class,
    Reason.MUST_SPECIFY: _to_specify,
    Reason.REJECTED_BY_RULE: _to_label,
    Reason.INVALID_OBJECT: _to_balance,
}
