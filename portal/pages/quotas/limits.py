"""LimitEdit: limits typed into the panel: read, tried on who waits, added up, saved."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from admission.explain.redecide import judge, request_of
from admission.models import AuditEvent, decision_id
from engine.quantity import ZERO, Quantity, QuantityError
from policies import roles, snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from admission.record.demand import WaitingOwner
    from engine.policy import PolicySet
    from portal.pages.shell.quota_lines import QuotaLine

FIELD: Final = "hard:"
"""The beginning of a field's name; the resource follows."""
LONGEST: Final = 64
TRIED: Final = 5
"""Waiting owners whose newest request is decided again."""
_NUMBER: Final = re.compile(r"(\d+)([A-Za-z]*)\Z")
_FULL: Final = 100
_ROOM: Final = 10
"""Percent by which a limit is raised where nobody waits for a certain amount."""


@dataclass(frozen=True, slots=True)
class LimitCell:
    """One limit: as stored, as typed, what is used of it, and what is wrong with it."""

    resource: str
    used: Quantity | None
    hard: Quantity
    typed: str
    percent: int | None = None
    look: str = ""
    error: str = ""

    @property
    def name(self) -> str:
        """The name of its field."""
        return f"{FIELD}{self.resource}"

    @property
    def amount(self) -> Quantity | None:
        """What was typed; None for what is no quantity."""
        try:
            return Quantity.parse(self.typed)
        except QuantityError:
            return None

    @property
    def is_changed(self) -> bool:
        """Whether another limit than the stored one was typed."""
        return self.typed != str(self.hard)

    @property
    def is_raised(self) -> bool:
        """Whether the typed limit is higher."""
        return self.amount is not None and self.amount > self.hard

    @property
    def bar_look(self) -> str:
        """The colour of its bar."""
        if self.percent is None or self.look == "blocked":
            return ""
        return "full" if self.percent >= _FULL else self.look

    @property
    def drawn(self) -> int:
        """How much of the typed limit is used, in percent, for the bar."""
        new = self.amount or self.hard
        if self.used is None or new.nano <= 0:
            return 0
        return min(100, 100 * self.used.nano // new.nano)


@dataclass(frozen=True, slots=True)
class LimitTrial:
    """What becomes of an owner that waits; ``passes`` is None where it cannot be decided again."""

    owner: WaitingOwner
    passes: bool | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class RunningTotal:
    """The limits of one resource in a place, added up before and after."""

    resource: str
    place: str
    quotas: int
    before: Quantity
    after: Quantity
    used: Quantity


@dataclass(frozen=True, slots=True)
class LimitEdit:
    """The limits of a quota as they are typed."""

    line: QuotaLine
    cells: Sequence[LimitCell]
    trials: Sequence[LimitTrial] = ()
    totals: Sequence[RunningTotal] = ()
    dangers: Sequence[str] = ()
    reason_error: str = ""
    problem: str = ""
    reason: str = field(default="")

    @property
    def changed(self) -> list[LimitCell]:
        """The cells that differ from what is stored."""
        return [cell for cell in self.cells if cell.is_changed]

    @property
    def is_fine(self) -> bool:
        """Whether every cell can be read."""
        return not any(cell.error for cell in self.cells)

    @property
    def label(self) -> str:
        """The words of the button that saves."""
        changed = self.changed
        if len(changed) != 1:
            return f"Save {len(changed)} limits" if changed else "Raise limit"
        verb = "Raise" if changed[0].is_raised or changed[0].amount is None else "Lower"
        return f"{verb} limit to {changed[0].typed[:20]}"

    @property
    def passing(self) -> list[str]:
        """Owners that the typed limits let in."""
        return [trial.owner.name or "(no name)" for trial in self.trials if trial.passes]

    @property
    def refused(self) -> list[LimitTrial]:
        """Owners that stay refused."""
        return [trial for trial in self.trials if trial.passes is False]

    @property
    def unknown(self) -> list[LimitTrial]:
        """Owners whose request was not kept whole."""
        return [trial for trial in self.trials if trial.passes is None]

    @property
    def below_used(self) -> list[LimitCell]:
        """Changed limits that less is left of than is used."""
        return [
            cell
            for cell in self.changed
            if cell.used is not None and cell.amount is not None and cell.amount < cell.used
        ]


def read_edit(line: QuotaLine, typed: Mapping[str, Any], *, suggests: bool = False) -> LimitEdit:
    """The cells of a quota with what was typed; ``suggests`` fills in a higher limit."""
    proposed = suggestion(line) if suggests else {}
    levels = {level.resource: level for level in line.placed.levels}
    cells = []
    for resource, hard in line.placed.quota.hard.items():
        level = levels.get(resource)
        text = str(typed.get(f"{FIELD}{resource}", proposed.get(resource, str(hard))))
        text = text.replace("\0", "").strip()[:LONGEST]
        cells.append(
            LimitCell(
                resource,
                level.used if level else None,
                hard,
                text,
                level.percent if level else None,
                level.look if level else "",
                _error_of(text),
            )
        )
    return LimitEdit(line, cells)


def _error_of(text: str) -> str:
    try:
        amount = Quantity.parse(text)
    except QuantityError:
        return "Write a quantity, such as 4, 500m or 16Gi."
    return "Write 0 or more." if amount < ZERO else ""


def suggestion(line: QuotaLine) -> dict[str, str]:
    """Higher limits: those with which everybody who waits would fit, else of the fullest one."""
    quota, demand = line.placed.quota, line.demand
    wanted = {
        name: used_of(line, name).nano + amount.nano
        for name, amount in (demand.amounts if demand else {}).items()
        if name in quota.hard
    }
    if not wanted and (hard := quota.hard.get(line.level.resource)):
        wanted = {line.level.resource: max(hard.nano * (100 + _ROOM) // 100, hard.nano + 1)}
    return {
        name: rounded_up(quota.hard[name], nano)
        for name, nano in wanted.items()
        if nano > quota.hard[name].nano
    }


def used_of(line: QuotaLine, resource: str) -> Quantity:
    """What is used of one resource; 0 for what is not counted yet."""
    for level in line.placed.levels:
        if level.resource == resource:
            return level.used or ZERO
    return ZERO


def rounded_up(hard: Quantity, wanted: int) -> str:
    """An amount in the unit that the limit is written in, rounded up."""
    match = _NUMBER.match(str(hard))
    number, suffix = (int(match[1]), match[2]) if match else (0, "")
    unit = hard.nano // number if number else Quantity.from_int(1).nano
    amount = -int(-wanted // unit)
    return f"{max(amount, number + 1)}{suffix}"


def tried(edit: LimitEdit, user: Any, lines: Iterable[QuotaLine]) -> LimitEdit:
    """What the typed limits would change: who passes, and the limits added up."""
    if not edit.changed or not edit.is_fine:
        return edit
    return dataclasses.replace(
        edit, trials=_trials(edit), totals=list(_totals(edit, user, list(lines)))
    )


def _trials(edit: LimitEdit) -> list[LimitTrial]:
    demand = edit.line.demand
    if demand is None:
        return []
    cluster, namespace, _ = edit.line.place
    policies = _policies_with(snapshot.load(cluster, namespace), edit)
    owners = demand.owners[:TRIED]
    decisions = [owner.decision for owner in owners]
    # The time selects the partitions to read.
    oldest = decision_id.moment(min(decisions))
    events = AuditEvent.objects.filter(created__gte=oldest, id__in=decisions)
    event_by_id = {event.id: event for event in events}
    found = []
    for owner in owners:
        event = event_by_id.get(owner.decision)
        request = request_of(event) if event else None
        if request is None:
            found.append(LimitTrial(owner, None))
            continue
        decision = judge(request, policies)
        first = decision.violations[0].message if decision.violations else ""
        found.append(LimitTrial(owner, decision.allowed, first))
    return found


def _policies_with(policies: PolicySet, edit: LimitEdit) -> PolicySet:
    """The policies of the namespace, with the typed limits in place of the stored ones."""
    name = edit.line.placed.quota.name
    limits = {cell.resource: cell.amount for cell in edit.cells if cell.amount is not None}
    quotas = tuple(
        dataclasses.replace(
            quota, hard={**quota.hard, **limits}, spec_hard={**quota.spec_hard, **limits}
        )
        if quota.name == name
        else quota
        for quota in policies.resource_quotas
    )
    return dataclasses.replace(policies, resource_quotas=quotas)


def _totals(edit: LimitEdit, user: Any, lines: Sequence[QuotaLine]) -> Iterable[RunningTotal]:
    """For each changed limit: the sums in the namespace and in the cluster, as far as seen."""
    cluster, namespace, _ = edit.line.place
    everywhere = cluster if roles.sees(user, cluster, "") else f"{cluster}, as far as you see it"
    for cell in edit.changed:
        counted = [
            line
            for line in lines
            if line.placed.cluster == cluster and cell.resource in line.placed.quota.hard
        ]
        own = [line for line in counted if line.placed.namespace == namespace]
        for place, among in ((namespace, own), (everywhere, counted)):
            before = _sum(line.placed.quota.hard[cell.resource] for line in among)
            more = (cell.amount or cell.hard) - cell.hard
            used = _sum(used_of(line, cell.resource) for line in among)
            yield RunningTotal(cell.resource, place, len(among), before, before + more, used)


def _sum(amounts: Iterable[Quantity]) -> Quantity:
    total: Quantity | None = None
    # Begun with the first and not with 0, whose format the sum would have.
    for amount in amounts:
        total = amount if total is None else total + amount
    return total or ZERO
