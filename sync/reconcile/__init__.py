"""Reconciliation of two manifests and their baseline: diff, verdict, merge. Pure."""

from sync.reconcile.diff import Difference, ResolutionError, Side, differences, resolve
from sync.reconcile.live_managers import Manager, managers, used_by_others
from sync.reconcile.verdict import Action, DiffVerdict, State, judge, judge_normal

__all__ = [
    "Action",
    "DiffVerdict",
    "Difference",
    "Manager",
    "ResolutionError",
    "Side",
    "State",
    "differences",
    "judge",
    "judge_normal",
    "managers",
    "resolve",
    "used_by_others",
]
