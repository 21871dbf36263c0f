"""``effect_of``: the answers in the namespaces of a change, as long before as after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import BooleanField, Case, Count, F, Max, Min, Q, Sum, Value, When

from admission.models import AuditEvent, decision_id
from admission.models.tally import column_of, with_hits
from admission.record import owners

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from admission.effect.writes import ChangeWrite
    from admission.models import AuditEventQuerySet

_Sum = tuple[int, int, int]  # number, µs of all, µs of the longest
LONGEST: Final = timedelta(days=7)
"""Decisions from so long before each write to so long after it are compared."""
MOST: Final = 20_000
"""Decisions of each side of a write that are read; where there are more, the time is shorter."""


@dataclass(slots=True)
class Answers:
    """Answers of one side by outcome, with the mean and the longest duration in µs."""

    allowed: int = 0
    mutated: int = 0
    would_deny: int = 0
    denied: int = 0
    mean_us: int = 0
    longest_us: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.allowed + self.mutated + self.would_deny + self.denied

    def add(self, column: str, number: int, *, mean_us: float, longest_us: int) -> None:
        """Count answers of one outcome."""
        sum_us = self.mean_us * self.total + mean_us * number
        setattr(self, column, getattr(self, column) + number)
        self.mean_us = round(sum_us / self.total)
        self.longest_us = max(self.longest_us, longest_us)


@dataclass(slots=True, kw_only=True)
class OwnerEffect:
    """Refusals of one owner's requests on both sides; ``oldest`` and ``newest`` are decisions.

    They are the first and the last one refused after the change, empty where there is none.
    """

    cluster: str
    namespace: str
    kind: str
    name: str
    denied: list[int] = field(default_factory=lambda: [0, 0])
    would_deny: list[int] = field(default_factory=lambda: [0, 0])
    oldest: str = ""
    newest: str = ""

    @property
    def increase(self) -> int:
        """Refusals more than before."""
        return self.denied[1] - self.denied[0]

    @property
    def weight(self) -> tuple[int, int]:
        """Orders owners: newly denied ones first, then those that are newly warned."""
        return self.increase, self.would_deny[1] - self.would_deny[0]

    def add(self, column: str, number: int, *, is_after: bool, ids: tuple[str, str]) -> None:
        """Count refusals of one outcome, with the ids of their first and their last one."""
        getattr(self, column)[is_after] += number
        if is_after:
            self.oldest = min(self.oldest or ids[0], ids[0])
            self.newest = max(self.newest, ids[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEffect:
    """Answers before and after a change, in ``length`` each; none of them if it is zero."""

    since: datetime
    until: datetime
    length: timedelta
    before: Answers
    after: Answers
    owners: Sequence[OwnerEffect] = ()

    @property
    def words(self) -> str:
        """The length as a person reads it: whole days, hours or minutes."""
        seconds = int(self.length.total_seconds())
        for unit, unit_seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
            if seconds >= unit_seconds:
                number = seconds // unit_seconds
                return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
        return "less than a minute"


def effect_of(
    writes: Sequence[ChangeWrite], *, decisions: AuditEventQuerySet, now: datetime
) -> ChangeEffect | None:
    """Compare the answers around each write of a change; None if nothing was written.

    ``decisions`` are those that the user may see. Dry runs do not count. Three queries a write, and
    at most ``MOST`` decisions of each side are read: where there are more, ``length`` is shorter.
    """
    if not writes:
        return None
    counted = {write: _decisions_of(write, decisions) for write in writes}
    length = min(_length(write, counted[write], now) for write in writes)
    before, after = Answers(), Answers()
    by_owner: dict[tuple[str, ...], OwnerEffect] = {}
    for write, of_write in counted.items():
        around = of_write.between(write.at - length, write.at + length)
        _count((before, after), by_owner, around, write)
    return ChangeEffect(
        since=writes[0].at - length,
        until=writes[-1].at + length,
        length=length,
        before=before,
        after=after,
        owners=sorted(by_owner.values(), key=lambda each: each.weight, reverse=True),
    )


def _decisions_of(write: ChangeWrite, decisions: AuditEventQuerySet) -> AuditEventQuerySet:
    """The decisions in the places of a write."""
    places = decisions.charged().for_cluster(write.cluster)
    return places.filter(namespace__in=write.namespaces)


def _length(write: ChangeWrite, decisions: AuditEventQuerySet, now: datetime) -> timedelta:
    """The time on each side that is read: over, and with no more decisions than may be read."""
    length = min(LONGEST, max(timedelta(0), now - write.at))
    times: Any = decisions.between(write.at - length, write.at + length)
    later = times.filter(created__gte=write.at).order_by("created", "id")
    earlier = times.filter(created__lt=write.at).newest_first()
    for side in (later, earlier):
        for at in side.values_list("created", flat=True)[MOST : MOST + 1]:
            length = min(length, abs(at - write.at))
    return length


def _count(
    sides: tuple[Answers, Answers],
    found: dict[tuple[str, ...], OwnerEffect],
    decisions: AuditEventQuerySet,
    write: ChangeWrite,
) -> None:
    """Count answers, and refusals by owner: one query, which reads each decision once.

    The owner is what the object's name shows of it; its kind is the object's.
    """
    outcomes: dict[tuple[int, str], list[_Sum]] = {}
    for is_after, verdict, has_hits, namespace, kind, name, *sums in _grouped(decisions, write.at):
        number, sum_us, longest_us, oldest, newest = sums
        column = column_of(verdict, "hit" if has_hits else "")
        outcomes.setdefault((is_after, column), []).append((number, sum_us, longest_us))
        if not (has_hits or column == "denied"):
            continue
        owner = owners.named(name.rstrip("-"))
        key = (write.cluster, namespace, kind, owner)
        if key not in found:
            place = {"cluster": write.cluster, "namespace": namespace}
            found[key] = OwnerEffect(**place, kind=kind, name=owner)
        found[key].add(column, number, is_after=bool(is_after), ids=(oldest, newest))
    for (is_after, column), parts in outcomes.items():
        number = sum(part[0] for part in parts)
        mean_us, longest_us = sum(part[1] for part in parts) / number, max(p[2] for p in parts)
        sides[is_after].add(column, number, mean_us=mean_us, longest_us=longest_us)


def _grouped(decisions: AuditEventQuerySet, at: datetime) -> Any:
    """Decisions by side, outcome and namespace; refusals, and only they, by kind and name, too."""
    is_refused = Q(verdict="denied") | Q(reasons__gt="")
    refused = {
        f"refused_{column}": Case(When(is_refused, then=F(column)), default=Value(""))
        for column in ("kind", "name")
    }
    rows = _with_side(with_hits(decisions.order_by()), at).annotate(**refused)
    return rows.values_list("is_after", "verdict", "has_hits", "namespace", *refused).annotate(
        Count("id"), Sum("duration_us"), Max("duration_us"), Min("id"), Max("id")
    )


def _with_side(decisions: Any, at: datetime) -> Any:
    """Annotate whether a decision came after a write."""
    after = When(created__gte=at, then=Value(True))  # noqa: FBT003 - a value of SQL
    side = Case(after, default=Value(False), output_field=BooleanField())  # noqa: FBT003 - another one
    return decisions.annotate(is_after=side)


def name_owners(shown: Iterable[OwnerEffect]) -> None:
    """Name kind and owner as the newest refusal of each has them; one query."""
    by_decision = {each.newest: each for each in shown if each.newest}
    if not by_decision:
        return
    times = [decision_id.moment(each) for each in by_decision]
    events = AuditEvent.objects.between(min(times), None).filter(id__in=by_decision)
    columns = ("id", "created", "owner_kind", "owner_name", "owner_uid", "old_request")
    for event in events.only(*columns):
        owner = owners.of_decision(event)
        if owner.name:
            each = by_decision[event.id]
            each.name, each.kind = owner.name, owner.kind or each.kind
