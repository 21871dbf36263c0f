"""The checks of one LimitRange in CEL: min, max and ratio of containers, pods and claims.

A check gives the engine's text for an amount that breaks a bound, and an empty text otherwise. CEL
cannot print a quantity: the totals of a pod are compared exactly, but not shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.compiled import amounts, cel
from engine.compiled.amounts import ZERO, amount
from engine.compiled.manifests import (
    CompiledPolicy,
    CompiledValidation,
    NotExpressible,
    name_missing,
    validating,
)
from engine.decision import Reason
from engine.limit_range.constraints import LIMITS, REQUESTS, constraints_of
from engine.limit_range.manifest import CLAIM, CONTAINER, POD
from engine.policy import Enforcement, InAPIServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.limit_range.constraints import Constraint
    from engine.policy import LimitRange, LimitRangeItem

MOST_CONTAINERS: Final = 256
"""Pods with more containers are refused: judging them could exceed the server's cost limit."""
_TOO_MANY: Final = f"the API server judges pods of at most {MOST_CONTAINERS} containers"
_NO_DEFAULTS: Final = "defaults are set by the portal or by LimitRanger alone"
_TOO_COSTLY: Final = "a pod of many containers would exceed the API server's cost limit"
# Costs of CEL, measured on a live API server. It allows an expression 1,000,000, and all those of a
# policy 10,000,000, once for the verdict and once more for the message.
_MOST_OF_ONE: Final = 900_000
_MOST_OF_ALL: Final = 4_800_000
_OF_BOUND: Final = 150
_OF_BIT: Final = 25
_OF_TOTAL: Final = 120_000
"""Of one side of the total of a pod of the most containers."""
_RULES: Final = (
    {"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]},
    {"apiGroups": [""], "resources": ["pods/resize"], "operations": ["UPDATE"]},
    {
        "apiGroups": [""],
        "resources": ["persistentvolumeclaims"],
        "operations": ["CREATE", "UPDATE"],
    },
)
_CONTAINERS: Final = "object.spec.containers"
_INIT_CONTAINERS: Final = "object.spec.?initContainers.orValue([])"
POD_LEVEL: Final = frozenset({"cpu", "memory"})
_SINGULAR: Final = {REQUESTS: "request", LIMITS: "limit"}
_BOUNDS: Final = {Reason.MIN_CONSTRAINT: "min", Reason.MAX_CONSTRAINT: "max"}


class _Side(NamedTuple):
    """Expressions for one side of a subject: whether it states an amount, that, and its text.

    ``shown`` is empty where the text is not known: CEL cannot print a quantity.
    """

    is_present: str
    amount: str
    shown: str


def compile_limit_range(
    limit_range: LimitRange, in_api_server: InAPIServer = InAPIServer.ENFORCE
) -> CompiledPolicy:
    """Compile the checks of a range; defaults are not set by the API server."""
    if in_api_server is InAPIServer.OFF:
        return CompiledPolicy()
    if nameless := name_missing(limit_range):
        return CompiledPolicy(not_expressible=(nameless,))
    bounds_by_item, missing = _divided(limit_range)
    checks: dict[str, list[str]] = {}
    variables = {"containers": f"{_CONTAINERS} + {_INIT_CONTAINERS}"}
    for item_type, bounds in bounds_by_item:
        if bounds:
            texts = _ITEM_CHECKS[item_type](limit_range, bounds, variables)
            checks.setdefault(_RESOURCE_OF[item_type], []).append(texts)
    if not checks:
        return CompiledPolicy(not_expressible=tuple(missing))
    pods = " + ".join(checks.get("pods", ["[]"]))
    claims = " + ".join(checks.get("persistentvolumeclaims", ["[]"]))
    validation = CompiledValidation(
        rules=[rule for rule in _RULES if rule["resources"][0].partition("/")[0] in checks],
        variables=variables if "pods" in checks else {},
        texts=(
            f'(request.resource.resource != "pods" ? {claims} : '
            f"variables.containers.size() > {MOST_CONTAINERS} ? [{cel.literal(_TOO_MANY)}] : "
            f'{pods}).filter(t, t != "")'
        )
        if "pods" in checks
        else f'({claims}).filter(t, t != "")',
        fallback=f"refused by LimitRange {limit_range.namespace}/{limit_range.name}",
    )
    manifests = validating(limit_range, in_api_server, validation)
    return CompiledPolicy(manifests=manifests, not_expressible=tuple(missing))


def _divided(
    limit_range: LimitRange,
) -> tuple[list[tuple[str, list[Constraint]]], list[NotExpressible]]:
    """Divide a range into the bounds that can be compiled, by item, and everything else."""
    found: list[tuple[str, list[Constraint]]] = []
    missing: list[NotExpressible] = []
    total, pod_names = 0, set[str]()
    for index, item in enumerate(limit_range.items):
        kept = []
        for bound in constraints_of(item) if item.type in _RESOURCE_OF else ():
            cost = _cost(bound, is_new_name=bound.name not in pod_names)
            if why := _why_not(bound, cost, total + cost):
                missing.append(NotExpressible(_field(index, bound), why))
                continue
            total += cost
            pod_names |= {bound.name} if bound.type == POD else set()
            kept.append(bound)
        found.append((item.type, kept))
        if item.type == CONTAINER and limit_range.enforcement is Enforcement.ENFORCE:
            given = {"default": item.default, "defaultRequest": item.default_request}
            missing += [
                NotExpressible(f"spec.limits[{index}].{key}", _NO_DEFAULTS)
                for key, amounts_given in given.items()
                if amounts_given
            ]
    return found, missing


def _why_not(bound: Constraint, cost: int, total: int) -> str:
    """Why a bound cannot be compiled; mostly empty."""
    if bound.enforced.is_infinite:
        return "amounts from 10^61 on are all the same"
    if bound.reason is Reason.RATIO_CONSTRAINT and bound.enforced.nano <= 0:
        return "no ratio is below 1"
    if not cel.is_sayable(bound.name):
        return "CEL cannot spell this name"
    return _TOO_COSTLY if cost > _MOST_OF_ONE or total > _MOST_OF_ALL else ""


def _cost(bound: Constraint, *, is_new_name: bool) -> int:
    """Estimate from above what judging a pod of the most containers costs the API server."""
    cost = _OF_BOUND
    if bound.reason is Reason.RATIO_CONSTRAINT:
        ratio = amounts.as_fraction(bound.enforced)
        bits = ratio.numerator.bit_length() + ratio.denominator.bit_length()
        cost += _OF_BIT * bits
    if bound.type == CONTAINER:
        return MOST_CONTAINERS * cost
    return cost + (2 * _OF_TOTAL if bound.type == POD and is_new_name else 0)


def _field(index: int, bound: Constraint) -> str:
    key = _BOUNDS.get(bound.reason, "maxLimitRequestRatio")
    return f"spec.limits[{index}].{key}[{bound.name}]"


def _container_checks(
    limit_range: LimitRange, bounds: list[Constraint], variables: dict[str, str]
) -> str:
    """Check every container, in the engine's order: containers, then bounds."""
    # Each bound has a variable of its own, because the server limits the cost of one expression.
    for place, bound in enumerate(bounds):
        sides = []
        for side in (REQUESTS, LIMITS):
            text = _stated(limit_range, side, bound.name)
            sides.append(_Side(f'{text} != ""', f"quantity({text})", text))
        variables[f"container{place}"] = f"variables.containers.map(c, {_check(bound, *sides)})"
    of_one = cel.listed(f"variables.container{place}[i]" for place in range(len(bounds)))
    return f"variables.containers.transformList(i, c, {of_one}).flatten()"


def _pod_checks(
    limit_range: LimitRange, bounds: list[Constraint], variables: dict[str, str]
) -> str:
    """Check the pod as a whole."""
    variables["init"] = _INIT_CONTAINERS
    variables["sidecars"] = 'variables.init.map(c, c.?restartPolicy.orValue("") == "Always")'
    variables["steady"] = (
        f"{_CONTAINERS} + variables.init.transformList(i, c, variables.sidecars[i], c)"
    )
    names = sorted({bound.name for bound in bounds})
    sides = {
        (name, side): _pod_side(limit_range, name, side, f"{side}{place}", variables)
        for place, name in enumerate(names)
        for side in (REQUESTS, LIMITS)
    }
    for place, bound in enumerate(bounds):
        pair = sides[bound.name, REQUESTS], sides[bound.name, LIMITS]
        variables[f"pod{place}"] = _check(bound, *pair)
    return cel.listed(f"variables.pod{place}" for place in range(len(bounds)))


def _pod_side(
    limit_range: LimitRange, name: str, side: str, prefix: str, variables: dict[str, str]
) -> _Side:
    """Compute one side of a pod's total, in variables that begin with ``prefix``.

    Init containers run one by one, each beside the sidecars started before it, and all of them
    before the others: the pod needs the larger of the highest such peak and the sum of all that
    run later.
    """
    text = _stated(limit_range, side, name)
    variables[f"{prefix}steady"] = (
        f'variables.steady.map(c, {text}).filter(t, t != "").map(t, quantity(t))'
    )
    variables[f"{prefix}init"] = f"variables.init.map(c, {text})"
    variables[f"{prefix}before"] = amounts.running_totals(
        f"variables.{prefix}init.transformList(i, t, "
        f'variables.sidecars[i] && t != "" ? quantity(t) : {ZERO})'
    )
    variables[f"{prefix}peaks"] = (
        f'variables.{prefix}init.transformList(i, t, !variables.sidecars[i] && t != "", '
        f"{ZERO}.add(variables.{prefix}before[i]).add(quantity(t)))"
    )
    variables[f"{prefix}sum"] = amounts.total(f"variables.{prefix}steady")
    variables[f"{prefix}total"] = amounts.largest(
        f"[variables.{prefix}sum] + variables.{prefix}peaks"
    )
    is_present = f'variables.{prefix}steady.size() > 0 || variables.{prefix}init.exists(t, t != "")'
    if name not in POD_LEVEL:
        return _Side(f"({is_present})", f"variables.{prefix}total", "")
    own = f'object.spec.?resources.?{side}[?{cel.literal(name)}].orValue("")'
    variables[f"{prefix}own"] = own
    own = f"variables.{prefix}own"
    return _Side(
        f'({own} != "" || {is_present})',
        f'({own} != "" ? quantity({own}) : variables.{prefix}total)',
        own,
    )


def _claim_checks(
    _limit_range: LimitRange, bounds: list[Constraint], _variables: dict[str, str]
) -> str:
    """Check a claim, which has requests only."""
    absent = _Side("false", ZERO, "")
    texts = []
    for bound in bounds:
        text = f'object.spec.?resources.?requests[?{cel.literal(bound.name)}].orValue("")'
        request = _Side(f'{text} != ""', f"quantity({text})", text)
        if bound.reason is Reason.MAX_CONSTRAINT:
            texts.append(_check(bound, absent, request, limit_is=REQUESTS))
        else:
            texts.append(_check(bound, request, absent))
    return cel.listed(texts)


_ITEM_CHECKS: Final = {CONTAINER: _container_checks, POD: _pod_checks, CLAIM: _claim_checks}
_RESOURCE_OF: Final = {CONTAINER: "pods", POD: "pods", CLAIM: "persistentvolumeclaims"}


def _stated(limit_range: LimitRange, side: str, name: str) -> str:
    """The text of an amount of the container ``c``, empty if it states none.

    A range that is not enforced sets no defaults, but is judged as if it had set its own.
    """
    default = ""
    if limit_range.enforcement is not Enforcement.ENFORCE:
        default = _defaults(limit_range.items, side).get(name, "")
    return f"c.?resources.?{side}[?{cel.literal(name)}].orValue({cel.literal(default)})"


def _defaults(items: tuple[LimitRangeItem, ...], side: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for item in items:
        if item.type == CONTAINER:
            given = item.default_request if side == REQUESTS else item.default
            found |= {name: quantity.canonical() for name, quantity in given.items()}
    return found


def _check(bound: Constraint, request: _Side, limit: _Side, *, limit_is: str = LIMITS) -> str:
    """Give the text of a broken bound, or an empty one."""
    if bound.reason is Reason.RATIO_CONSTRAINT:
        return _ratio_check(bound, request, limit)
    if bound.reason is Reason.MIN_CONSTRAINT:
        word, breaks = "minimum", f"isLessThan({amount(bound.enforced)})"
        first, second, names = request, limit, ("request", "limit")
    else:
        word, breaks = "maximum", f"isGreaterThan({amount(bound.enforced)})"
        first, second, names = limit, request, (_SINGULAR[limit_is], "request")
    label = f"{word} {bound.name} usage per {bound.type} is {bound.enforced}"
    # Two blanks, as in Kubernetes' own text.
    missing = cel.literal(f"{label}.  No {names[0]} is specified")
    first_text, second_text = (
        _but(f"{label}, but {name} is ", side, bound)
        for name, side in zip(names, (first, second), strict=True)
    )
    return (
        f"(!({first.is_present}) ? {missing} : {first.amount}.{breaks} ? {first_text} : "
        f'{second.is_present} && {second.amount}.{breaks} ? {second_text} : "")'
    )


def _but(begun: str, side: _Side, bound: Constraint) -> str:
    """Word an amount beyond a bound, without its figure where CEL cannot print that."""
    exact = f"{cel.literal(begun)} + {side.shown}"
    if side.shown and bound.type != POD:
        return exact
    where = "below it" if bound.reason is Reason.MIN_CONSTRAINT else "above it"
    vague = cel.literal(begun + where)
    return f'({side.shown} != "" ? {exact} : {vague})' if side.shown else vague


def _ratio_check(bound: Constraint, request: _Side, limit: _Side) -> str:
    """Compare limit/request with a ratio p/q, as limit*q with request*p."""
    ratio = amounts.as_fraction(bound.enforced)
    label = f"{bound.name} max limit to request ratio per {bound.type} is {bound.enforced}"
    no_request, no_limit = (
        cel.literal(f"{label}, but no {singular} is specified or {singular} is 0")
        for singular in ("request", "limit")
    )
    is_zero = f"compareTo({ZERO}) == 0"
    upper = f"[{limit.amount}].map(q, {amounts.times(ratio.denominator, 'q')})[0]"
    lower = f"[{request.amount}].map(q, {amounts.times(ratio.numerator, 'q')})[0]"
    above = f"{limit.amount}.compareTo({amounts.INFINITE}) >= 0 || {upper}.isGreaterThan({lower})"
    return (
        f"(!({request.is_present}) || {request.amount}.{is_zero} ? {no_request} : "
        f"!({limit.is_present}) || {limit.amount}.{is_zero} ? {no_limit} : "
        f'{above} ? {cel.literal(f"{label}, but provided ratio is above it")} : "")'
    )
