"""Simulations: decisions of the engine about an object, without charging or writing anything.

Input are stored policies, unsaved ones in their place or beside them, and an object; the result
has the engine's decision, the cause of each change, and the cost for every quota.
"""

from policies.simulation.costs import Cost, CostLine
from policies.simulation.explain import Cause, ExplainedField, FieldSource
from policies.simulation.kept_tests import (
    judged,
    kept_answer,
    run_tests,
    tests_of,
    with_answer,
)
from policies.simulation.proposed import with_proposed
from policies.simulation.restart_preview import Refused, RunningPod, refused_restarts
from policies.simulation.simulate import Simulation, request_for, run, simulate, with_unsaved

__all__ = [
    "Cause",
    "Cost",
    "CostLine",
    "ExplainedField",
    "FieldSource",
    "Refused",
    "RunningPod",
    "Simulation",
    "judged",
    "kept_answer",
    "refused_restarts",
    "request_for",
    "run",
    "run_tests",
    "simulate",
    "tests_of",
    "with_answer",
    "with_proposed",
    "with_unsaved",
]
