"""PassingValues: other amounts in a draft under which pods that it refuses would be admitted.

The amounts are guessed from the violations; the engine decides what each would still refuse.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from admission.explain.candidates import candidates
from admission.explain.object_diff import value_at
from engine.decision import Reason
from engine.patch import ABSENT
from engine.pod import CONTAINER_LISTS
from engine.policy import PolicySet
from engine.quantity import DECIMAL_SI, Quantity, QuantityError
from policies.drafts.draft import draft_of_text, render
from policies.drafts.kinds import LIMIT_RANGE, RESOURCE_QUOTA
from policies.simulation import request_for
from portal.pages.policies.panes.impact import retried

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from admission.explain.restarts import RestartRow
    from engine.decision import Violation
    from policies.drafts.draft import Draft, PolicyPlace
    from portal.pages.policies.panes.impact import DraftImpact

    Manifest = Mapping[str, Any]

MOST_CELLS: Final = 2
"""Cells that other values are tried for, those that refuse the most owners first."""
MOST_VALUES: Final = 2
"""Values that are tried of a cell: each evaluates all running pods again."""
_BOUNDS: Final = {Reason.MAX_CONSTRAINT: "max", Reason.MIN_CONSTRAINT: "min"}
_DEFAULTS: Final = {"limits": "default", "requests": "defaultRequest"}
_WORDS: Final = {
    "max": "Max",
    "min": "Min",
    "maxLimitRequestRatio": "Ratio",
    "default": "Default limit",
    "defaultRequest": "Default request",
}
_THOUSAND: Final = 1_000
_MILLI: Final = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class PassingValue:
    """Another amount for a cell, and what it would still refuse."""

    cell: str
    words: str
    amount: str
    refused: int
    owners: int


class _Amount(NamedTuple):
    """The place of one amount in a draft: of an item of a range, or of a quota's limits."""

    field: str
    resource: str
    rule: int = 0

    @property
    def path(self) -> str:
        """Its path in the manifest."""
        where = "" if self.field == "hard" else f"limits[{self.rule}]."
        return f"spec.{where}{self.field}[{self.resource}]"

    @property
    def words(self) -> str:
        """Its name for people."""
        return f"{_WORDS[self.field]} of {self.resource}" if self.field in _WORDS else self.resource

    def read(self, manifest: Manifest) -> Quantity | None:
        """The amount that the draft has there."""
        spec = manifest["spec"]
        amounts = spec if self.field == "hard" else spec["limits"][self.rule]
        try:
            return Quantity.parse_json((amounts.get(self.field) or {})[self.resource])
        except (KeyError, QuantityError):
            return None

    def put(self, manifest: Manifest, amount: str) -> dict[str, Any]:
        """The manifest with another amount there."""
        spec = dict(manifest["spec"])
        if self.field == "hard":
            spec["hard"] = {**spec["hard"], self.resource: amount}
        else:
            items = [dict(item) for item in spec["limits"]]
            items[self.rule][self.field] = {**items[self.rule][self.field], self.resource: amount}
            spec["limits"] = items
        return {**manifest, "spec": spec}


def passing_values(place: PolicyPlace, draft: Draft, impact: DraftImpact) -> list[PassingValue]:
    """The nearest amounts that pass some of the refused pods, and all of them."""
    is_of_amounts = place.kind in (LIMIT_RANGE, RESOURCE_QUOTA)
    if not is_of_amounts or draft.sheet is None or draft.manifest is None:
        return []
    guessed: dict[_Amount, set[Quantity]] = defaultdict(set)
    owners: dict[_Amount, int] = defaultdict(int)
    for each in impact.rows:
        for where, amount in _guesses(each.restart, draft.manifest, each.namespace):
            guessed[where].add(amount)
            owners[where] += 1
    cells = place.kind.build(draft.sheet, draft.manifest).places
    tried = [
        passing
        for where in sorted(guessed, key=lambda where: -owners[where])[:MOST_CELLS]
        if (cell := cells.get(where.path, ""))
        for passing in _tried(place, draft.manifest, impact, (where, cell, guessed[where]))
    ]
    return [each for each in tried if each.refused < impact.refused]


def _tried(
    place: PolicyPlace,
    manifest: Manifest,
    impact: DraftImpact,
    guess: tuple[_Amount, str, set[Quantity]],
) -> Sequence[PassingValue]:
    """The amounts furthest from the draft's, which pass the most pods, the nearest first."""
    where, cell, amounts = guess
    now = where.read(manifest)
    if now is None:
        return []
    passing: list[PassingValue] = []
    for amount in sorted(amounts, key=lambda each: -abs(each.nano - now.nano))[:MOST_VALUES]:
        other = where.put(manifest, text := str(amount))
        # An amount that another of the draft does not allow is no way out.
        if not draft_of_text(place, render(other), is_checked=False).is_fine:
            continue
        found = retried(impact, place.cluster, other)
        passing.append(
            PassingValue(
                cell=cell,
                words=where.words,
                amount=text,
                refused=found.refused,
                owners=found.owners,
            )
        )
    return passing[::-1]


def _guesses(
    row: RestartRow, manifest: Manifest, namespace: str
) -> Iterator[tuple[_Amount, Quantity]]:
    """Amounts of the draft that may remove one of the reasons why these pods are refused."""
    name = str((manifest.get("metadata") or {}).get("name") or "")
    for violation in row.refusals:
        policy = violation.policy
        if policy is not None and (policy.kind, policy.name) == (manifest.get("kind"), name):
            yield from _of_bound(violation)
        if manifest.get("kind") == LIMIT_RANGE.name:
            yield from _of_default(violation, row.pods[0].pod.asked, manifest, namespace)


def _of_bound(violation: Violation) -> Iterator[tuple[_Amount, Quantity]]:
    """The pod's own amount in place of the bound that it breaks."""
    numbers, rule = violation.numbers, violation.rule or 0
    resource = numbers.get("resource", "")
    if bound := _BOUNDS.get(violation.reason):
        sides = ("limit", "request") if bound == "max" else ("request", "limit")
        given = next((numbers[side] for side in sides if side in numbers), "")
        if given:
            yield _Amount(bound, resource, rule), Quantity.parse(given)
    elif violation.reason is Reason.RATIO_CONSTRAINT and "ratio" in numbers:
        # Without one the request or the limit is missing or zero: no ratio passes that.
        request, limit = Quantity.parse(numbers["request"]), Quantity.parse(numbers["limit"])
        if limit.is_infinite or request.is_infinite:
            return  # above every ratio
        thousandths = -(-limit.nano * _THOUSAND // request.nano)
        ratio = Quantity(thousandths * _MILLI, DECIMAL_SI)
        yield _Amount("maxLimitRequestRatio", resource, rule), ratio
    elif violation.reason is Reason.EXCEEDED_QUOTA:
        used, requested = Quantity.parse(numbers["used"]), Quantity.parse(numbers["requested"])
        # Rounded as the engine rounds the sum that it compares.
        yield _Amount("hard", resource), used.stored_sum(requested)


def _of_default(
    violation: Violation, asked: Manifest, manifest: Manifest, namespace: str
) -> Iterator[tuple[_Amount, Quantity]]:
    """Another default for an amount that the pod does not have itself."""
    if violation.reason is Reason.INVALID_OBJECT:
        yield from _of_balance(asked, manifest)
    if violation.reason not in (*_BOUNDS, Reason.RATIO_CONSTRAINT):
        return
    request = request_for(asked, namespace=namespace)
    for change in candidates([violation], request, PolicySet(namespace=namespace), ()):
        if change.path[-3] == "resources" and value_at(asked, change.path) is ABSENT:
            side, resource = map(str, change.path[-2:])
            for where in _defaults(manifest, side, resource):
                yield where, Quantity.parse_json(change.new)


def _of_balance(asked: Manifest, manifest: Manifest) -> Iterator[tuple[_Amount, Quantity]]:
    """Where a request is above its limit and one of them is a default: the amount of the other."""
    for path in _resources_paths(asked):
        given = value_at(asked, path)
        requests, limits = (_amounts(given, side) for side in ("requests", "limits"))
        for side, here, other in (("limits", limits, requests), ("requests", requests, limits)):
            for resource in other.keys() - here.keys():
                for where in _defaults(manifest, side, resource):
                    yield where, Quantity.parse_json(other[resource])


def _amounts(resources: Any, side: str) -> Mapping[str, Any]:
    amounts = resources.get(side) if isinstance(resources, dict) else None
    return amounts if isinstance(amounts, dict) else {}


def _resources_paths(pod: Manifest) -> Iterator[tuple[str | int, ...]]:
    for group in CONTAINER_LISTS:
        containers = value_at(pod, ("spec", group))
        for number, _ in enumerate(containers if isinstance(containers, list) else ()):
            yield ("spec", group, number, "resources")


def _defaults(manifest: Manifest, side: str, resource: str) -> Iterator[_Amount]:
    """The draft's defaults for this amount of a container."""
    for number, item in enumerate(manifest["spec"]["limits"]):
        if resource in (item.get(_DEFAULTS[side]) or {}):
            yield _Amount(_DEFAULTS[side], resource, number)
