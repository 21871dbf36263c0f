"""WeekView: the changes that were published in a week, what each did, and whom they refuse."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from admission.effect.effect import effect_of, name_owners
from admission.effect.writes import writes_of
from admission.models import AuditEvent
from policies import roles
from policies.change_sets.states import StepKind
from policies.models import ChangeStep
from policies.services import changes
from portal.pages.changes.effects.effect import EffectFigure
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from admission.effect.effect import ChangeEffect, OwnerEffect
    from admission.models import AuditEventQuerySet
    from policies.models import ChangeSet

SHOWN: Final = 20
"""Changes of a week whose effect is counted, the newest ones."""
OWNERS_SHOWN: Final = 10
WEEK: Final = timedelta(days=7)
TOTALLED: Final = (("denied", "Denied"), ("would_deny", "Would deny"), ("mutated", "Mutated"))
_PUBLISHING: Final = (StepKind.PUBLISH, StepKind.PUBLISH_NOW, StepKind.START)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekLine:
    """A change of the week, the step that published it, and its effect."""

    change: ChangeSet
    published: ChangeStep
    effect: ChangeEffect | None


class WeekView(PortalPage):
    """A calendar week from Monday on, in UTC; by default this one."""

    template_name = "changes/effects/week.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The changes of the week with their effects, and the owners that they refuse."""
        now = datetime.now(UTC)
        monday = _monday(self.request.GET.get("week", ""), now.date())
        begin = datetime(monday.year, monday.month, monday.day, tzinfo=UTC)
        decisions: AuditEventQuerySet = roles.visible(
            AuditEvent.objects.all(), self.request.user, cluster="cluster", namespace="namespace"
        )
        steps = self._published(begin)
        lines = [self._line(step, decisions, now) for step in steps[:SHOWN]]
        owners = _newly_refused(lines)
        return super().get_context_data(
            **kwargs,
            week=_name(monday),
            monday=begin,
            sunday=begin + WEEK - timedelta(days=1),
            earlier=_name(monday - WEEK),
            later=_name(monday + WEEK) if monday + WEEK <= now.date() else "",
            is_this_week=begin <= now < begin + WEEK,
            lines=lines,
            number=len(steps),
            reverted=sum(line.change.state == "reverted" for line in lines),
            figures=_totals(lines),
            owners=owners[:OWNERS_SHOWN],
            more_owners=max(0, len(owners) - OWNERS_SHOWN),
        )

    def _published(self, begin: datetime) -> list[ChangeStep]:
        """The first publishing step of each change in the week, the newest one first."""
        visible = changes.visible_changes(self.request.user)
        steps = ChangeStep.objects.filter(
            step__in=_PUBLISHING, created__gte=begin, created__lt=begin + WEEK, change__in=visible
        )
        first_of = {step.change_id: step for step in steps.select_related("change").order_by("-pk")}
        return sorted(first_of.values(), key=lambda step: step.pk, reverse=True)

    def _line(self, step: ChangeStep, decisions: AuditEventQuerySet, now: datetime) -> WeekLine:
        change = step.change
        writes = writes_of(changes.visible_items(change, self.request.user))
        return WeekLine(
            change=change,
            published=step,
            effect=effect_of(writes, decisions=decisions, now=now),
        )


def _monday(asked: str, today: date) -> date:
    """The Monday of a week such as 2026-W48; of this week for anything else."""
    try:
        year, number = asked.split("-W")
        monday = date.fromisocalendar(int(year), int(number), 1)
    except ValueError:
        monday = today
    if not date(2000, 1, 1) <= monday <= today:
        monday = today
    return monday - timedelta(days=monday.weekday())


def _name(monday: date) -> str:
    year, number, _ = monday.isocalendar()
    return f"{year}-W{number:02}"


def _totals(lines: Sequence[WeekLine]) -> list[EffectFigure]:
    """Denied, warned and mutated answers before and after all changes."""
    effects = [line.effect for line in lines if line.effect is not None]
    figures = []
    for column, label in TOTALLED:
        before = sum(getattr(each.before, column) for each in effects)
        after = sum(getattr(each.after, column) for each in effects)
        figures.append(
            EffectFigure(
                label=f"{label} around them",
                before=f"{before:,}",
                after=f"{after:,}",
                is_worse=column == "denied" and after > before,
            )
        )
    return figures


def _newly_refused(lines: Sequence[WeekLine]) -> list[tuple[OwnerEffect, ChangeSet]]:
    """Owners with more refusals than before, each with the change; the most first."""
    found = [
        (owner, line.change)
        for line in lines
        if line.effect is not None
        for owner in line.effect.owners
        if owner.increase > 0
    ]
    found.sort(key=lambda pair: pair[0].weight, reverse=True)
    name_owners(owner for owner, _ in found[:OWNERS_SHOWN])
    return found
