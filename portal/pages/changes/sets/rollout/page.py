"""RolloutTabView: the plan of a change's roll-out, its stages, its guards, and its steps."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.http import Http404

from admission.rollout.figures import MOST
from policies.change_sets.rollout.members import PlanError
from policies.change_sets.rollout.modes import unobservable
from policies.change_sets.rollout.plan import plan_json, read_plan
from policies.change_sets.rollout.suggestion import suggest_plan
from policies.change_sets.rollout.waves import RolloutPlace
from policies.change_sets.states import ChangeState, StepKind
from policies.models import Rollout
from policies.services import changes
from policies.services.changes import rollout as rollouts
from portal.pages.changes.sets.frame import ChangePage
from portal.pages.changes.sets.rollout.form import TRIPS, PlanForm
from portal.pages.changes.sets.rollout.lines import shown_rollout
from portal.pages.changes.sets.rollout.places import wave_places
from portal.pages.changes.sets.rollout.rows import FORM_VERBS, OBSERVED, typed_from, typed_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from policies.change_sets.rollout.plan import RolloutPlan
    from policies.models import ChangeItem
    from policies.services.changes.rollout import PlacedItem
    from portal.pages.changes.sets.rollout.rows import TypedPlan

_PLANS: Final = ("plan", "plantext")
_WRONG: Final = "The plan was not saved; see below."


class RolloutTabView(ChangePage):
    """Stages and guards; the form of the plan until it is started."""

    template_name = "changes/sets/rollout/tab.html"
    route = "change-rollout"
    done_words = {
        "plan": "The plan is stored. Start the roll-out once the change is approved.",
        "plantext": "The plan is stored. Start the roll-out once the change is approved.",
        "start": "Started: the first stage is written.",
        "advance": "The next stage has begun.",
        "stop": "Stopped. What is written stays.",
        "resume": "It goes on.",
    }
    typed: TypedPlan | None = None
    form: PlanForm | None = None
    """What was sent of the plan, and its form."""

    @cached_property
    def items(self) -> list[ChangeItem]:
        """The objects of the change that the reader sees."""
        return list(changes.visible_items(self.change, self.request.user))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The roll-out as it stands, and the form of its plan for those who may set it."""
        rollout = Rollout.objects.filter(change=self.change).select_related("change").first()
        if rollout and rollout.unseen:
            rollouts.see(self.change, user=self.username)
        plan = rollout.to_plan() if rollout else None
        shown = rollout and shown_rollout(
            rollout, items=self.items, groups=self.groups, user=self.request.user
        )
        found = super().get_context_data(
            **kwargs,
            rollout=rollout,
            shown=shown,
            most=MOST,
            is_live=self.change.stands is ChangeState.ROLLING_OUT,
            reverts=plan is not None and plan.on_trip == "revert",
        )
        if found["may_steer"] and StepKind.DESCRIBE.value in found["allowed"]:
            found |= self._plan_context(plan)
        return found

    def _plan_context(self, plan: RolloutPlan | None) -> dict[str, Any]:
        """What the form of the plan shows; without a plan it offers one."""
        may_observe = any(not unobservable(item.to_content()) for item in self.items)
        shown = plan or suggest_plan(
            [RolloutPlace(cluster=each.cluster, namespace=each.namespace) for each in self.items],
            may_observe=may_observe,
        )
        form = self.form or PlanForm(typed_of(shown), is_read=False)
        read = PlanForm(self.typed, is_read=True).read() if self.typed else shown
        observed = any(wave[mode].value() for wave in form.waves for mode in OBSERVED)
        sent_text = self.request.POST.get("text")
        return {
            "form": form,
            "trips": TRIPS,
            "may_observe": may_observe or observed,
            "is_suggested": plan is None,
            "places": wave_places(read, self._placed(read)) if read else None,
            "plan_text": sent_text or json.dumps(plan_json(shown), indent=2),
            "is_text_wrong": sent_text is not None,
        }

    def _placed(self, plan: RolloutPlan) -> list[PlacedItem]:
        return rollouts.place_items(self.items, plan=plan, number=self.change.pk)

    def post(self, request: HttpRequest, **names: Any) -> HttpResponse:
        """Change the form alone, or take a step."""
        verb, _, rest = request.POST.get("do", "").partition(":")
        if verb not in FORM_VERBS:
            return super().post(request, **names)
        self.require(verb)
        self.typed = typed_from(request.POST).after(verb, rest)
        self.form = PlanForm(self.typed, is_read=False)
        return self.render_to_response(self.get_context_data())

    def take(self, verb: str, rest: str) -> None:
        """Store the plan, or take a step."""
        if verb not in self.done_words:
            raise Http404
        if verb in _PLANS:
            self.require(verb)
            plan = self._sent_plan() if verb == "plan" else _plan_of(self.request.POST)
            rollouts.put_plan(self.change, plan=plan, user=self.username)
            return
        self.require("publish")
        self._move(verb, rest)

    def _move(self, verb: str, rest: str) -> None:
        """Start, advance, stop or go on."""
        user = self.username
        if verb == "start":
            rollouts.start(self.change, user=user, seen=self.request.POST.get("seen", ""))
        elif verb != "advance":
            step = rollouts.stop if verb == "stop" else rollouts.resume
            step(self.change, user=user)
        elif rest.isdecimal() and Rollout.objects.filter(change=self.change).exists():
            rollouts.advance(self.change, expected=int(rest[:6]))
        else:
            raise Http404

    def _sent_plan(self) -> RolloutPlan:
        """The plan of the form; what is wrong with it stands beside its fields."""
        self.typed = typed_from(self.request.POST)
        self.form = PlanForm(self.typed, is_read=True)
        plan = self.form.read()
        if plan is None or self.form.refuse_unobservable(self._placed(plan)):
            raise ValidationError(_WRONG)
        return plan


def _plan_of(sent: Mapping[str, str]) -> RolloutPlan:
    """The plan that was sent as JSON."""
    try:
        return read_plan(json.loads(sent.get("text", "")))
    except PlanError as error:
        raise ValidationError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise ValidationError("The plan is no JSON.") from error
