"""Changes that might make a refused object pass, derived from its violations. Guesses only.

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

_ONE: Final = re.compile(
    rf"spec\.(?:(?P<group>{'|'.join(CONTAINER_LISTS)})\[(?P<at>\d+)\]\.)?resources"
    r"(?:\.(?P<side>requests|limits)(?:\[(?P<name>.+)\])?)?"
)
_NANO: Final = 10**9
_MILLI: Final = 10**6
_MEBI: Final = 2**20 * _NANO
_SMALL: Final = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "1Gi"}
MOST_CLASSES: Final = 20
ANY: Final = "example"
"""A placeholder for a value that only the user knows."""


class _Context(NamedTuple):
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
    context = _Context(request.object or {}, policies, classes)
    for found in violations:
        guess = _GUESSES.get(found.reason)
        if guess is not None:
            yield from guess(context, found)


def _places(obj: Mapping[str, Any]) -> Iterator[tuple[Token, ...]]:
    """The paths of ``resources`` in a pod."""
    for group in CONTAINER_LISTS:
        containers = value_at(obj, ("spec", group))
        for index, _ in enumerate(containers if isinstance(containers, list) else ()):
            yield ("spec", group, index, "resources")


def _set(
    obj: Mapping[str, Any], path: tuple[Token, ...], amount: Quantity
) -> Iterator[FieldChange]:
    old = value_at(obj, path)
    new = amount.canonical()
    if amount.nano >= 0 and _amount(old) != amount:
        yield FieldChange(path=path, old=old, new=new)


def _amount(value: Any) -> Quantity | None:
    try:
        return None if value is ABSENT else Quantity.parse_json(value)
    except QuantityError:
        return None


def _to_bound(context: _Context, found: Violation) -> Iterator[FieldChange]:
    """Set an amount to its bound; of a sum over containers, change one of them as far as needed."""
    obj, numbers, name = context.obj, found.numbers, found.numbers["resource"]
    side = "limits" if ".limits[" in found.field else "requests"
    bound = Quantity.parse(numbers["enforced"])
    one = _ONE.fullmatch(found.field)
    if one:
        yield from _set(obj, (*_place(one), side, name), bound)
        return
    total = Quantity.parse(numbers.get(side.removesuffix("s"), "0"))
    yield from _shifted(obj, (side, name), bound.nano - total.nano)


def _shifted(
    obj: Mapping[str, Any], where: tuple[str, str], difference: int
) -> Iterator[FieldChange]:
    """Change the amount of one container after the other by the difference."""
    side, name = where
    for place in _places(obj):
        path = (*place, side, name)
        current = _amount(value_at(obj, path))
        if current is None and difference < 0:
            continue
        nano = (current.nano if current else 0) + difference
        like = current or Quantity.parse(_SMALL.get(name, "1"))
        if nano > 0:
            yield from _set(obj, path, _rounded(nano, like, up=difference > 0))


def _rounded(nano: int, like: Quantity, *, up: bool) -> Quantity:
    """A round amount next to this one, up or down: thousandths of a CPU, whole MiB."""
    units = (_MEBI, _NANO) if like.nano >= _MEBI else (_MILLI,)
    for unit in units:
        whole = -(-nano // unit) * unit if up else nano // unit * unit
        if whole > 0:
            return Quantity(whole, like.format)
    return Quantity(nano, like.format)


def _to_ratio(context: _Context, found: Violation) -> Iterator[FieldChange]:
    """Raise the request, or lower the limit, to the allowed ratio."""
    obj, numbers, name = context.obj, found.numbers, found.numbers["resource"]
    ratio = Quantity.parse(numbers["enforced"]).nano
    request, limit = (_amount(numbers.get(side, ABSENT)) for side in ("request", "limit"))
    one = _ONE.fullmatch(found.field)
    if limit and ratio > 0:
        least = _rounded(-(-limit.nano * _NANO // ratio), limit, up=True)
        yield from _reach(obj, one, ("requests", name), request, least)
    if request and request.nano > 0:
        most = _rounded(request.nano * ratio // _NANO, request, up=False)
        yield from _reach(obj, one, ("limits", name), limit, most)


def _reach(
    obj: Mapping[str, Any],
    one: re.Match[str] | None,
    where: tuple[str, str],
    total: Quantity | None,
    wanted: Quantity,
) -> Iterator[FieldChange]:
    if one:
        yield from _set(obj, (*_place(one), *where), wanted)
    else:
        yield from _shifted(obj, where, wanted.nano - (total.nano if total else 0))


def _to_fit(context: _Context, found: Violation) -> Iterator[FieldChange]:
    """Lower a request to what the quota has left: of one container, the largest that fits."""
    obj, numbers = context.obj, found.numbers
    free = Quantity.parse(numbers["hard"]).nano - Quantity.parse(numbers["used"]).nano
    excess = Quantity.parse(numbers["requested"]).nano - free
    side, name = _quota_side(numbers["resource"])
    claim = ("spec", "resources", side, name)
    if value_at(obj, claim) is not ABSENT:
        current = _amount(value_at(obj, claim))
        if current and current.nano > excess:
            yield from _set(obj, claim, _rounded(current.nano - excess, current, up=False))
    yield from _shifted(obj, (side, name), -excess)
    # Another class escapes a quota whose scopes select some classes only.
    name = found.policy.name if found.policy else ""
    quota = next((each for each in context.policies.resource_quotas if each.name == name), None)
    selector = (quota.scope_selector or ()) if quota else ()
    if any(each.scope_name == "PriorityClass" for each in selector):
        yield from _to_other_class(context, found)


def _quota_side(resource: str) -> tuple[str, str]:
    """``limits.cpu`` is a limit, ``requests.cpu`` and ``cpu`` are requests."""
    side, dot, name = resource.partition(".")
    return (side, name) if dot and side in {"requests", "limits"} else ("requests", resource)


def _to_other_class(context: _Context, _found: Violation) -> Iterator[FieldChange]:
    """Every other priority class, and none."""
    path = ("spec", "priorityClassName")
    old = value_at(context.obj, path)
    for name in context.classes[:MOST_CLASSES]:
        if name != old:
            yield FieldChange(path=path, old=old, new=name)
    if old is not ABSENT:
        yield FieldChange(path=path, old=old, new=ABSENT)


def _to_specify(context: _Context, found: Violation) -> Iterator[FieldChange]:
    """Add an amount where none is given: that of the other side, else a small one."""
    side, name = _quota_side(found.numbers["resource"])
    other = "limits" if side == "requests" else "requests"
    least = [
        item.min[name]
        for each in context.policies.limit_ranges
        for item in each.items
        if item.type == "Container" and name in item.min
    ]
    small = max(least, default=Quantity.parse(_SMALL.get(name, "1")))
    obj = context.obj
    for place in _places(obj):
        if value_at(obj, (*place, side, name)) is ABSENT:
            given = _amount(value_at(obj, (*place, other, name)))
            yield from _set(obj, (*place, side, name), given or small)


def _to_balance(context: _Context, found: Violation) -> Iterator[FieldChange]:
    """Make a request and its limit equal, where the request is above the limit."""
    one = _ONE.match(found.field)
    if one is None:
        return
    obj, place = context.obj, _place(one)
    limits = value_at(obj, (*place, "limits"))
    for name in limits if isinstance(limits, dict) else ():
        limit = _amount(limits[name])
        request = _amount(value_at(obj, (*place, "requests", name)))
        if limit and request and request != limit:
            yield from _set(obj, (*place, "requests", name), limit)
            yield from _set(obj, (*place, "limits", name), request)


def _place(one: re.Match[str]) -> tuple[Token, ...]:
    if one["group"]:
        return ("spec", one["group"], int(one["at"]), "resources")
    return ("spec", "resources")


def _to_label(context: _Context, found: Violation) -> Iterator[FieldChange]:
    """Change labels or annotations so that the rule that refused does not match any more."""
    name = found.policy.name if found.policy else ""
    policy = next((each for each in context.policies.metadata_policies if each.name == name), None)
    if policy is None or found.rule is None:
        return
    predicate = policy.rules[found.rule].policy_predicate
    if predicate.label_selector is not None:
        yield from _unmatched(context.obj, "labels", predicate.label_selector)
    if predicate.annotation_selector is not None:
        yield from _unmatched(context.obj, "annotations", predicate.annotation_selector)


def _unmatched(obj: Mapping[str, Any], name: str, selector: LabelSelector) -> Iterator[FieldChange]:
    """Break one entry of a selector: all have to hold for a match."""
    for entry in selector.match_expressions:
        path = ("metadata", name, entry.key)
        old = value_at(obj, path)
        if entry.operator == "DoesNotExist":
            yield FieldChange(path=path, old=old, new=ANY, is_free=True)
        elif entry.operator == "NotIn":
            for value in entry.values:
                yield FieldChange(path=path, old=old, new=value)
        elif old is not ABSENT:
            yield FieldChange(path=path, old=old, new=ABSENT)
            yield FieldChange(path=path, old=old, new=ANY, is_free=True)
    for key in selector.match_labels:
        path = ("metadata", name, key)
        yield FieldChange(path=path, old=value_at(obj, path), new=ABSENT)
        yield FieldChange(path=path, old=value_at(obj, path), new=ANY, is_free=True)


_GUESSES: Final[dict[Reason, Callable[[_Context, Violation], Iterator[FieldChange]]]] = {
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
