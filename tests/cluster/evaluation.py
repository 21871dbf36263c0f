"""Evaluates one case by API server and engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.cluster.cases import OVERHEAD, RUNTIME
from tests.cluster.comparison import Verdict, compare

if TYPE_CHECKING:
    from tests.cluster.cases import Case
    from tests.cluster.worlds import Observed, World


class Found(NamedTuple):
    """A difference that counts, with everything needed to reproduce it."""

    case: Case
    observed: Observed
    verdict: Verdict


def ask(
    world: World, case: Case, default_priority: str = ""
) -> tuple[Case, Observed, Verdict] | None:
    """Evaluate one case by API server and engine; None if its object could not be created."""
    answer = world.ask(case)
    if answer is None:
        return None
    placed, observed = answer
    placed["defaultPriority"] = default_priority
    return placed, observed, judge(placed, observed)


def judge(case: Case, observed: Observed) -> Verdict:
    """Compare the engine's answer to the case with the observed one."""
    return compare(as_seen(case), observed)


def as_seen(case: Case) -> Case:
    """The case as a webhook receives it: with the priority and overhead that other plugins set."""
    obj, default = case["request"]["object"], case.get("defaultPriority")
    if obj["kind"] != "Pod":
        return case
    spec = dict(obj["spec"])
    if default and not spec.get("priorityClassName"):
        spec["priorityClassName"] = default
    if spec.get("runtimeClassName") == RUNTIME:
        spec.setdefault("overhead", dict(OVERHEAD))
    return {**case, "request": {**case["request"], "object": {**obj, "spec": spec}}}
