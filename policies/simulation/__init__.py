"""What would happen to an object: the engine asked, without charging and writing anything.

One room for every page that asks "what if": stored policies, unsaved ones in their place or beside
them, an object; back come the engine's decision, the cause of each change and what every quota
would be charged.
"""

from policies.simulation.costs import Cost, CostLine
from policies.simulation.explain import Cause, ExplainedField, FieldSource
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
    "refused_restarts",
    "request_for",
    "run",
    "simulate",
    "with_unsaved",
]
