"""RolloutTabView: the plan of a change's roll-out, its stages, its guards, and its steps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.http import Http404

from admission.rollout.figures import figures_of
from policies.change_sets.rollout.guards import judge_guards
from policies.change_sets.rollout.members import PlanError
from policies.change_sets.rollout.plan import read_plan
from policies.change_sets.states import ChangeState
from policies.db.clock import read_clock
from policies.models import Rollout
from policies.services.changes import rollout as rollouts
from portal.pages.changes.sets.frame import ChangePage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policies.change_sets.rollout.guards import GuardReading
    from policies.change_sets.rollout.plan import RolloutPlan, WavePlan
    from policies.models import RolloutStage

_UNDER_WAY: Final = (ChangeState.ROLLING_OUT, ChangeState.STOPPED)
_EXAMPLE: Final = {
    "waves": [
        {"percent": 10, "stages": [{"mode": "enforce", "dwell": 7200}]},
        {"stages": [{"mode": "enforce", "dwell": 3600}]},
    ],
    "guards": [{"kind": "denials_per_owner", "above": 5}],
    "on_trip": "stop",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLine:
    """A stage of the plan, and what became of it; ``begun`` None: it is still to come."""

    number: int
    wave: int
    where: str
    mode: str
    dwell: str
    begun: RolloutStage | None


class RolloutTabView(ChangePage):
    """Stages and guards; the plan as JSON until it is started."""

    template_name = "changes/sets/rollout.html"
    route = "change-rollout"
    done_words = {
        "plan": "The plan is stored. Start the roll-out once the change is approved.",
        "start": "Started: the first stage is written.",
        "advance": "The next stage has begun.",
        "stop": "Stopped. What is written stays.",
        "resume": "It goes on.",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The roll-out as it stands."""
        rollout = Rollout.objects.filter(change=self.change).first()
        plan = rollout.to_plan() if rollout else None
        sent = self.request.POST.get("plan")
        return super().get_context_data(
            **kwargs,
            rollout=rollout,
            lines=list(_lines(rollout, plan)) if rollout and plan else [],
            readings=self._readings(rollout, plan) if rollout and plan else [],
            reverts=plan is not None and plan.on_trip == "revert",
            plan_text=sent or json.dumps(rollout.plan if rollout else _EXAMPLE, indent=2),
        )

    def _readings(self, rollout: Rollout, plan: RolloutPlan) -> Sequence[GuardReading]:
        """The guards with their figures, for those who see all places."""
        sees_all = self.visible_number == sum(each.number for each in self.groups)
        if not sees_all or self.change.stands not in _UNDER_WAY:
            return []
        return judge_guards(plan.guards, figures_of(rollout, now=read_clock()))

    def take(self, verb: str, rest: str) -> None:
        """Store the plan, or take a step."""
        user = self.username
        if verb == "plan":
            self.require(verb)
            plan = _sent_plan(self.request.POST.get("plan", ""))
            rollouts.put_plan(self.change, plan=plan, user=user)
            return
        if verb not in self.done_words:
            raise Http404
        self.require("publish")
        if verb == "start":
            rollouts.start(self.change, user=user, seen=self.request.POST.get("seen", ""))
        elif (
            verb == "advance"
            and rest.isdecimal()
            and Rollout.objects.filter(change=self.change).exists()
        ):
            rollouts.advance(self.change, expected=int(rest[:6]))
        elif verb in {"stop", "resume"}:
            step = rollouts.stop if verb == "stop" else rollouts.resume
            step(self.change, user=user)
        else:
            raise Http404


def _sent_plan(text: str) -> RolloutPlan:
    try:
        return read_plan(json.loads(text))
    except PlanError as error:
        raise ValidationError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise ValidationError("The plan is no JSON.") from error


def _lines(rollout: Rollout, plan: RolloutPlan) -> Iterator[StageLine]:
    begun = {stage.number: stage for stage in rollout.stages.all()}
    for number, (wave, stage) in enumerate(plan.stages, start=1):
        yield StageLine(
            number=number,
            wave=wave,
            where=_where(plan.waves[wave - 1]),
            mode=stage.mode.value,
            dwell=_duration(stage.dwell),
            begun=begun.get(number),
        )


def _where(wave: WavePlan) -> str:
    labels = [f"{name}={value}" for name, value in wave.labels.items()]
    percent = [f"{wave.percent} %"] if wave.percent < 100 else []  # noqa: PLR2004 - all of them
    return ", ".join([*wave.clusters, *wave.namespaces, *labels, *percent]) or "all places"


def _duration(seconds: int) -> str:
    parts = [(seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "none"
