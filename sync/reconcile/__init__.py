"""Reconciliation of two sides and their baseline: diff, verdict, merge. Pure."""

from sync.reconcile.diff import Difference, differences
from sync.reconcile.field_managers import Manager, managers
from sync.reconcile.merge import ResolutionError, resolve
from sync.reconcile.normal_form import normal
from sync.reconcile.verdict import Action, DiffVerdict, State, brake, judge, judge_normal

__all__ = [
    "Action",
    "DiffVerdict",
    "Difference",
    "Manager",
    "ResolutionError",
    "State",
    "brake",
    "differences",
    "judge",
    "judge_normal",
    "managers",
    "normal",
    "resolve",
]
