"""RestartsView of the editor: running pods that a draft would refuse if recreated, by owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.shortcuts import redirect
from django.urls import reverse

from admission.explain.running_pods import MOST
from engine.errors import DecodeError
from policies.drafts import danger
from portal.pages.policies.editor import EditorView
from portal.pages.policies.editor_new import NewPolicyView
from portal.pages.policies.panes.impact import impact_of
from portal.pages.policies.panes.other_values import passing_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from engine.policy import PolicySet
    from policies.drafts.draft import PolicyPlace
    from portal.pages.policies.state import EditorState


class RestartsView(EditorView):
    """The editor of a stored policy with the preview; nothing is written."""

    route: ClassVar[str] = "policy"

    @property
    def here(self) -> str:
        """The editor's address: its form is sent there from now on."""
        return reverse(self.route, kwargs=self.kwargs)

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:  # noqa: ARG002 - Django's name
        """Lead back to the editor: there is no preview without a draft."""
        return redirect(self.here)

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Answer with the preview, whatever the button."""
        return self.answer(self.read(request.POST))

    def outcome(self, editor_state: EditorState) -> dict[str, Any]:
        """The editor's context with the pods that would be refused."""
        is_script = self.request.headers.get("HX-Request") == "true"
        found = {**super().outcome(editor_state), "is_script": is_script}
        if editor_state.draft.manifest is None:
            return {**found, "impact_error": "The YAML cannot be read yet: correct it first."}
        try:
            impact = impact_of(self.cluster, self.places.all, editor_state.draft.manifest)
            values = passing_values(self.place, editor_state.draft, impact)
        except DecodeError as error:
            return {**found, "impact_error": str(error)}
        return {**found, "impact": impact, "values": values, "restarts_most": MOST}

    def script_template(self) -> str:
        """Scripts fetch the preview alone."""
        return "policies/editor/_impact.html"


class NewRestartsView(RestartsView, NewPolicyView):
    """The preview of a new policy."""

    route = "policy-new"


def refused_running(
    place: PolicyPlace, manifest: Mapping[str, Any], _before: PolicySet
) -> Sequence[str]:
    """A warning if more than GATEHOUSE_CONFIRM_REFUSED_PERCENT of them would be refused."""
    if place.namespace is None:
        return ()
    try:
        impact = impact_of(place.cluster, [place.namespace.name], manifest, as_enforced=False)
    except DecodeError:
        return ()
    newly, pods = impact.newly, impact.pods
    if newly * 100 <= settings.GATEHOUSE_CONFIRM_REFUSED_PERCENT * pods:
        return ()
    return (f"{newly} of {pods} running pods would be refused if recreated",)


danger.sources.append(refused_running)
