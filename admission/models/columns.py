"""Column types: KeptJSONField (JSON as text), Verdict and AnswerKind choices, ``outcome_of``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from engine.decision import Decision


class KeptJSONField(models.JSONField):
    """JSON that is stored and read whole, and never searched: text, also on PostgreSQL.

    Each decision writes four of them; as ``jsonb``, nine of them were half of the cost of a row.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        """Text; SQLite, where it is that anyway, goes on checking that it is JSON."""
        return "text" if connection.vendor == "postgresql" else super().db_type(connection)

    def get_db_prep_value(
        self,
        value: Any,
        connection: BaseDatabaseWrapper,
        prepared: bool = False,  # noqa: FBT001, FBT002 - Django's
    ) -> Any:
        """Compact, as the writer writes it. A text is JSON already, as in the writer's rows."""
        del connection, prepared
        is_json_text = value is None or isinstance(value, str)
        return value if is_json_text else json.dumps(value, separators=(",", ":"))


class Verdict(models.TextChoices):
    """The verdict in the response."""

    ALLOWED = "allowed", "Allowed"
    MUTATED = "mutated", "Mutated"
    DENIED = "denied", "Denied"


class AnswerKind(models.TextChoices):
    """The kind of an answer on pages: its verdict, or that only warn or audit policies hit."""

    ALLOWED = "allowed", "Allowed"
    MUTATED = "mutated", "Mutated"
    WOULD_DENY = "would-deny", "Would deny"
    DENIED = "denied", "Denied"


def verdict_of(decision: Decision) -> Verdict:
    """The verdict on record for a decision of the engine."""
    if not decision.allowed:
        return Verdict.DENIED
    return Verdict.MUTATED if decision.patch else Verdict.ALLOWED


def outcome_of(verdict: str, reasons: str) -> AnswerKind:
    """Derive the kind from two columns: an allowed request has only reasons of warn or audit."""
    if reasons and verdict != Verdict.DENIED:
        return AnswerKind.WOULD_DENY
    return AnswerKind(verdict)
