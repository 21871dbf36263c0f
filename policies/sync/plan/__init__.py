"""Thinks about two sides and what they last agreed on: what changed, and what to do. Pure."""

from policies.sync.plan.comparing import Difference, differences
from policies.sync.plan.judging import Action, State, Verdict, brake, judge, judge_normal
from policies.sync.plan.managing import Manager, managers
from policies.sync.plan.normal import normal
from policies.sync.plan.resolving import ResolutionError, resolve

__all__ = [
    "Action",
    "Difference",
    "Manager",
    "ResolutionError",
    "State",
    "Verdict",
    "brake",
    "differences",
    "judge",
    "judge_normal",
    "managers",
    "normal",
    "resolve",
]
