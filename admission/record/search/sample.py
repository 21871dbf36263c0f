"""The few columns that a search reads of many decisions, to count and to group them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, F, TextField, Value, When
from django.db.models.functions import Cast, StrIndex, Substr

from admission.models import AnswerKind, Verdict, decision_id, outcome_of
from admission.record import owners

if TYPE_CHECKING:
    from datetime import datetime

    from admission.record.owners import Owner

PRIORITY: Final = '"priorityClassName":"'
COLUMNS: Final = (
    "id", "created", "cluster", "namespace", "kind", "name", "phase", "user", "verdict", "dry_run",
    "reasons", "policy_names", "asked",
)  # fmt: skip
_JSON: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """What counts and groups need of one decision; only refusals have their owner."""

    id: str
    created: datetime
    cluster: str
    namespace: str
    kind: str
    name: str
    phase: str
    user: str
    verdict: str
    dry_run: bool
    reasons: str
    policy_names: str
    priority: str
    owner: Owner = owners.NOBODY

    @property
    def outcome(self) -> AnswerKind:
        """How the answer is shown."""
        return outcome_of(self.verdict, self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The newest rows that fit, of those before a decision id if there is a ``before``.

    ``older`` is the decision id at which the next ones begin; empty: there are none.
    ``searched_to`` is where the search ended: whether there are older ones it does not know.
    """

    rows: tuple[Sampled, ...] = ()
    before: str = ""
    older: str = ""
    searched_to: datetime | None = None

    @property
    def is_whole(self) -> bool:
        """Whether there are no others."""
        return not (self.before or self.older)

    @property
    def begins(self) -> datetime | None:
        """The moment before which these were decided; None: now."""
        return decision_id.moment(self.before) if self.before else None


def asked() -> Any:
    """The beginning of the request where it was refused, else its priority class alone."""
    text = Cast(F("request"), TextField())
    beginning = Substr(text, 1, owners.READ)
    priority = Substr(text, StrIndex(text, Value(PRIORITY)), len(PRIORITY) + 256)
    return Case(When(verdict=Verdict.DENIED, then=beginning), default=priority)


def sampled(row: dict[str, Any]) -> Sampled:
    """Make one of a row."""
    text = row.pop("asked") or ""
    owner = owners.NOBODY
    if row["verdict"] == Verdict.DENIED:
        owner = owners.recorded(owners.metadata_in(text))
    return Sampled(**row, priority=_priority(text), owner=owner)


def _priority(text: str) -> str:
    start = text.find(PRIORITY)
    if start < 0:
        return ""
    with suppress(ValueError):  # cut off: no name that Kubernetes takes is so long
        return str(_JSON.raw_decode(text, start + len(PRIORITY) - 1)[0])
    return ""
