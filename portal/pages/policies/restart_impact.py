"""RestartsView of the editor: running pods that a draft would refuse if recreated, by owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.shortcuts import redirect
from django.urls import reverse

from admission.explain.restarts import restarts_of
from admission.explain.running_pods import MOST, running_in
from engine.errors import DecodeError
from policies.drafts import danger
from policies.simulation import with_unsaved
from portal.pages.policies.editor import EditorView, NewPolicyView

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
        found = super().outcome(editor_state)
        if editor_state.draft.manifest is None:
            return {**found, "restarts_error": "The YAML cannot be read yet: correct it first."}
        before = found["before"]
        try:
            policies_after = with_unsaved(before, [editor_state.draft.manifest], as_enforced=True)
            running_pods = running_in(self.cluster, self.namespace_name)
            restarts = restarts_of(running_pods, before=before, after=policies_after)
        except DecodeError as error:
            return {**found, "restarts_error": str(error)}
        return {**found, "restarts": restarts, "restarts_most": MOST}


class NewRestartsView(RestartsView, NewPolicyView):
    """The preview of a new policy."""

    route = "policy-new"


def refused_running(
    place: PolicyPlace, manifest: Mapping[str, Any], before: PolicySet
) -> Sequence[str]:
    """A warning if more than GATEHOUSE_CONFIRM_REFUSED_PERCENT of them would be refused."""
    if place.namespace is None:
        return ()
    pods_now = running_in(place.cluster, place.namespace.name)
    try:
        policies_after = with_unsaved(before, [manifest])
        newly_refused = restarts_of(pods_now, before=before, after=policies_after).newly
    except DecodeError:
        return ()
    if newly_refused * 100 <= settings.GATEHOUSE_CONFIRM_REFUSED_PERCENT * len(pods_now.pods):
        return ()
    return (f"{newly_refused} of {len(pods_now.pods)} running pods would be refused if recreated",)


danger.sources.append(refused_running)
