"""SimulateView: a pod of a form, or a pasted object, tried under the policies of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from policies import roles
from policies.drafts.preview import keep_text
from policies.models import KeptTest, PriorityClass
from portal.pages.namespaces.outcome import outcome_of
from portal.pages.namespaces.place import NamespaceTabPage
from portal.pages.namespaces.try_object import TrialForm, attempt_of, attempt_of_text

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

OUTCOME: Final = "outcome"
ASKED: Final = ("c", "priority", "labels", "annotations")
"""Fields of the form: without any of them nothing was asked for yet."""


class SimulateView(NamespaceTabPage):
    """The simulator; an object sent to it is tried, and nothing is stored."""

    template_name = "namespaces/simulate.html"
    tab = "namespace-simulate"

    def may_post(self) -> bool:
        """Whoever sees the page may try an object: that needs no permission of its own."""
        return True

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Try the pod of the query string; without one the page is empty."""
        trial_form = TrialForm.of(request.GET)
        is_asked = any(name in request.GET for name in ASKED)
        outcome = outcome_of(attempt_of(trial_form, self.policies)) if is_asked else {}
        return self.answer(outcome, trial_form, is_asked=is_asked)

    def post(self, request: HttpRequest, **_kwargs: Any) -> HttpResponse:
        """Try pasted YAML, too long for a query string."""
        trial = attempt_of_text(request.POST.get("yaml", ""), self.policies)
        return self.answer(outcome_of(trial), trial.draft, pasted=trial.text)

    def answer(
        self,
        outcome: dict[str, Any],
        trial_form: TrialForm,
        *,
        pasted: str = "",
        is_asked: bool = True,
    ) -> HttpResponse:
        """Show the outcome alone to a page that asks for it, else everything."""
        status = 422 if outcome.get("problems") else 200
        tried = {
            **outcome,
            "draft": trial_form,
            "pasted": pasted,
            "is_asked": is_asked,
            "keep_text": self._keep_text(outcome),
        }
        if self.request.headers.get("HX-Target") == OUTCOME:
            self.template_name = "namespaces/_outcome.html"
            # htmx swaps only responses of status 200, and problems are part of the outcome.
            return self.render_to_response({**tried, **self.names()})
        classes = PriorityClass.objects.filter(cluster=self.cluster).order_by("-value", "name")
        priorities = list(classes.values_list("name", flat=True))
        context = self.get_context_data(**self.kwargs, **tried, priorities=priorities)
        return self.render_to_response(context, status=status)

    def _keep_text(self, outcome: dict[str, Any]) -> str:
        """The tried object as a test, for those who may keep one here."""
        if "found" not in outcome or not self.may(roles.writing(KeptTest.kind, "add")):
            return ""
        return keep_text(self.policies, outcome["attempt"].object)
