"""Verdicts of decisions as choices: allowed, denied, mutated, would-deny."""

from __future__ import annotations

from django.db import models


class Verdict(models.TextChoices):
    """The verdict in the response."""

    ALLOWED = "allowed", "Allowed"
    MUTATED = "mutated", "Mutated"
    DENIED = "denied", "Denied"


class AnswerKind(models.TextChoices):
    """How an answer is shown: as its verdict, or that only warn or audit kept it from a refusal."""

    ALLOWED = "allowed", "Allowed"
    MUTATED = "mutated", "Mutated"
    WOULD_DENY = "would-deny", "Would deny"
    DENIED = "denied", "Denied"


def outcome_of(verdict: str, reasons: str) -> AnswerKind:
    """Derive the outcome from two columns: what was let through has reasons only if observed."""
    if reasons and verdict != Verdict.DENIED:
        return AnswerKind.WOULD_DENY
    return AnswerKind(verdict)
