"""EffectTabView, a tab of a published change: answers before and after it, and by owner."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from admission.effect.effect import effect_of, name_owners
from admission.effect.writes import writes_of
from admission.models import AuditEvent
from policies import roles
from policies.services import changes
from portal.pages.changes.sets.frame import ChangePage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admission.effect.effect import ChangeEffect

OWNERS_SHOWN: Final = 50
_LABELS: Final = (
    ("denied", "Denied"),
    ("would_deny", "Would deny"),
    ("mutated", "Mutated"),
    ("allowed", "Allowed as they are"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFigure:
    """A number before and after a change; ``is_worse`` is said of more denials alone."""

    label: str
    before: str
    after: str
    is_worse: bool = False


class EffectTabView(ChangePage):
    """What a change did to the decisions that one sees."""

    template_name = "changes/effects/effect.html"
    route = "change-effect"
    http_method_names = ["get", "head", "options"]
    """It has no button of its own; those of the head belong to the overview."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The answers on both sides, and the owners that they refused."""
        user = self.request.user
        decisions = roles.visible(
            AuditEvent.objects.all(), user, cluster="cluster", namespace="namespace"
        )
        writes = writes_of(changes.visible_items(self.change, user))
        effect = effect_of(writes, decisions=decisions, now=datetime.now(UTC))
        shown = list(effect.owners[:OWNERS_SHOWN]) if effect else []
        name_owners(shown)
        return super().get_context_data(
            **kwargs,
            effect=effect,
            figures=list(_figures(effect)) if effect else [],
            owners=[(owner, self.change) for owner in shown],
            more_owners=len(effect.owners) - len(shown) if effect else 0,
        )


def _figures(effect: ChangeEffect) -> Iterator[EffectFigure]:
    before, after = effect.before, effect.after
    for column, label in _LABELS:
        sides = getattr(before, column), getattr(after, column)
        yield EffectFigure(
            label=label,
            before=f"{sides[0]:,}",
            after=f"{sides[1]:,}",
            is_worse=column == "denied" and sides[1] > sides[0],
        )
    yield EffectFigure(
        label="Mean duration", before=_duration(before.mean_us), after=_duration(after.mean_us)
    )
    yield EffectFigure(
        label="Longest", before=_duration(before.longest_us), after=_duration(after.longest_us)
    )


def _duration(microseconds: int) -> str:
    return f"{microseconds / 1000:.1f} ms"
