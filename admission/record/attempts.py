"""Attempts at a namespace's quotas: QuotaEvents, refusals Caused by policies, owners Waiting."""

from __future__ import annotations

from collections import Counter
from dataclasses import InitVar, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from admission.models import AuditEvent, Verdict
from admission.record import owners

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ATTEMPTS_READ: Final = 500
"""Newest decisions about the namespace that are read."""
REFUSAL_PERIOD: Final = timedelta(days=7)
WAITING_SHOWN: Final = 8


@dataclass(slots=True)
class QuotaEvent:
    """One decision: columns of the record by the same names, and the owner."""

    id: str
    created: datetime
    kind: str
    name: str
    phase: str
    verdict: str
    message: str
    violations: list[dict[str, Any]]
    owner_name: InitVar[str]
    asked: InitVar[str | None]
    owner: str = field(init=False)

    def __post_init__(self, owner_name: str, asked: str | None) -> None:
        self.owner = owner_name or owners.name_of(self.name, owners.metadata_in(asked or ""))

    @property
    def allowed(self) -> bool:
        """Whether it was not refused."""
        return self.verdict != Verdict.DENIED


_ATTEMPT_COLUMNS: Final = tuple(each.name for each in fields(QuotaEvent) if each.init)


@dataclass(frozen=True, slots=True)
class Caused:
    """Refusals that one policy caused; ``query`` finds them in the record."""

    kind: str
    name: str
    number: int
    query: dict[str, str]


@dataclass(slots=True)
class Waiting:
    """An owner whose newest attempt was refused: since when, how often, the last decision."""

    name: str
    kind: str
    last: QuotaEvent
    since: datetime = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.since = self.last.created


def newest_attempts(cluster: str, namespace: str) -> list[QuotaEvent]:
    """The newest decisions; no objects of the model, which cost more than all else here."""
    charged_decisions = AuditEvent.objects.for_cluster(cluster).for_namespace(namespace).charged()
    asked = owners.old_request_beginning()
    found: Any = charged_decisions.annotate(asked=asked).values_list(
        *_ATTEMPT_COLUMNS, "owner_name", "asked"
    )
    since = datetime.now(UTC) - REFUSAL_PERIOD
    return [QuotaEvent(*attempt_row) for attempt_row in found.newest(ATTEMPTS_READ, since=since)]


def caused_by(attempts: Iterable[QuotaEvent], cluster: str, namespace: str) -> list[Caused]:
    """Which policies refused how often, the most frequent first."""
    refusal_counts: Counter[tuple[str, str]] = Counter()
    for attempt in attempts:
        if attempt.allowed:
            continue
        policies = [violation.get("policy") for violation in attempt.violations]
        refusing_policies = {(policy["kind"], policy["name"]) for policy in policies if policy}
        # No policy among the violations: a required quota is missing, or the object is wrong.
        refusal_counts.update(refusing_policies or {("LimitedResources", "")})
    record_query = {"cluster": cluster, "namespace": namespace, "verdict": "denied"}
    caused_refusals = []
    for (policy_kind, policy_name), refused in refusal_counts.most_common(WAITING_SHOWN):
        policy = {"policy": f"{policy_kind}/{namespace}/{policy_name}"} if policy_name else {}
        caused_refusals.append(Caused(policy_kind, policy_name, refused, record_query | policy))
    return caused_refusals


def waiting_of(attempts: Iterable[QuotaEvent]) -> Sequence[Waiting]:
    """Owners refused and not admitted since, the longest wait first.

    ``attempts`` are newest first. An attempt that only the mutating webhook allowed is not
    admitted yet.
    """
    admitted: set[tuple[str, str]] = set()
    waiting: dict[tuple[str, str], Waiting] = {}
    for each in attempts:
        owner_key = (each.kind, each.owner)
        if owner_key in admitted:
            continue
        if each.allowed:
            if each.phase == "validate":
                admitted.add(owner_key)
            continue
        waits = waiting.setdefault(owner_key, Waiting(each.owner or "(no name)", each.kind, each))
        waits.number += 1
        waits.since = each.created
    return sorted(waiting.values(), key=lambda each: each.since)[:WAITING_SHOWN]
