"""Reduces a case to the smallest one that still shows a difference, by removing parts."""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.evaluation import Found, ask
from tests.cluster.worlds import Barrier, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.api_client import ApiClient
    from tests.cluster.cases import Case

_NUMBERS: Final = itertools.count(1)
_ATTEMPTS: Final = 150
_NEEDED: Final = frozenset(
    {"apiVersion", "kind", "metadata", "name", "image", "spec", "status", "hard", "used"}
)


def shrink(api: ApiClient, case: Case, default_priority: str) -> Found | None:
    """Remove all removable parts; None if the difference does not occur again."""
    smallest = _try(api, case, default_priority)
    if smallest is None:
        return None
    attempts = 0
    while attempts < _ATTEMPTS:
        for part in smaller(smallest.case):
            attempts += 1
            found = _try(api, part, default_priority)
            if found is not None:
                smallest = found
                break
            if attempts >= _ATTEMPTS:
                break
        else:
            break
    return smallest


def _try(api: ApiClient, case: Case, default_priority: str) -> Found | None:
    """Evaluate the case again in a new namespace."""
    world = World(api, f"shrink-{next(_NUMBERS)}")
    before = [case["before"]] if "before" in case else []
    world.make(copy.deepcopy(case["policies"]), before)
    Barrier(api).wait()
    try:
        answer = ask(world, {**case, "policies": []}, default_priority)
    except LookupError:
        return None  # a change refers to a removed part
    if answer is None or answer[2].apart or not answer[2].differences:
        return None
    placed, observed, verdict = answer
    return Found({**placed, "policies": case["policies"]}, observed, verdict)


def smaller(case: Case) -> Iterator[Case]:
    """Every case with one part less, large parts first."""
    for index in range(len(case["policies"])):
        yield {**case, "policies": case["policies"][:index] + case["policies"][index + 1 :]}
    for index in range(len(case.get("changes", ()))):
        yield {**case, "changes": case["changes"][:index] + case["changes"][index + 1 :]}
    for key in ("posted", "before", "policies"):
        for part in _without_one(case.get(key)):
            yield {**case, key: part}


def _without_one(value: Any) -> Iterator[Any]:
    """Every form of a value without one of its entries, at any depth."""
    if isinstance(value, list):
        yield from _shorter(value)
    elif isinstance(value, dict):
        for key in [key for key in value if key not in _NEEDED]:
            yield {k: v for k, v in value.items() if k != key}
        for key, each in value.items():
            for part in _without_one(each):
                yield {**value, key: part}


def _shorter(entries: list[Any]) -> Iterator[list[Any]]:
    if len(entries) > 1:
        yield from (entries[:i] + entries[i + 1 :] for i in range(len(entries)))
    for index, each in enumerate(entries):
        for part in _without_one(each):
            yield [*entries[:index], part, *entries[index + 1 :]]
