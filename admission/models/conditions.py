"""Conditions on decisions, to filter by or to exclude: beginnings, reason, policy, outcome."""

from __future__ import annotations

from typing import Final

from django.db.models import Q

from admission.models.columns import AnswerKind, Verdict

# Ends the range of a prefix, which an index serves; on SQLite none serves LIKE.
_LAST_CHARACTER: Final = "\U0010ffff"


def begins(column: str, beginning: str) -> Q:
    """A column's text begins like this; as a range, which both databases index."""
    end = beginning + _LAST_CHARACTER
    return Q(**{f"{column}__gte": beginning, f"{column}__lt": end})


def has_reason(reason: str) -> Q:
    """A violation or the Status has this reason."""
    # Reasons stand between spaces, so that none is found inside another.
    return Q(reasons__contains=f" {reason} ")


def evaluated(policy: str) -> Q:
    """This policy was evaluated: its name, or ``Kind/namespace/name``."""
    needle = f" {policy} " if "/" in policy else f"/{policy} "
    return Q(policy_names__contains=needle)


def has_outcome(outcome: str) -> Q:
    """The decision is of this kind; the four kinds have no row in common."""
    if outcome == AnswerKind.DENIED:
        return Q(verdict=Verdict.DENIED)
    if outcome == AnswerKind.WOULD_DENY:
        return ~Q(verdict=Verdict.DENIED) & ~Q(reasons="")
    return Q(verdict=outcome, reasons="")
