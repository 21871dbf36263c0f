"""Reconciliation of two manifests and their baseline: normal form, diff, verdict, merge. Pure."""

from sync.reconcile.diff import Difference, ResolutionError, Side, differences, resolve
from sync.reconcile.normal_form import Manager, managers, normal
from sync.reconcile.verdict import Action, DiffVerdict, State, brake, judge, judge_normal

__all__ = [
    "Action",
    "DiffVerdict",
    "Difference",
    "Manager",
    "ResolutionError",
    "Side",
    "State",
    "brake",
    "differences",
    "judge",
    "judge_normal",
    "managers",
    "normal",
    "resolve",
]
