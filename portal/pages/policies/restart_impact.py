"""RestartsView of the editor: running pods that a draft would refuse if recreated, by owner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.conf import settings
from django.shortcuts import redirect
from django.urls import reverse

from admission.explain.running_pods import MOST, AdmittedPod, running_in
from admission.record import owners
from engine.errors import DecodeError
from policies.drafts import danger
from policies.simulation import refused_restarts, with_unsaved
from portal.pages.policies.editor import EditorView, NewPolicyView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from admission.explain.running_pods import RunningPods
    from engine.decision import Violation
    from engine.policy import PolicySet
    from policies.drafts.draft import PolicyPlace
    from portal.pages.policies.state import EditorState

PODS_SHOWN: Final = 5


@dataclass(slots=True, kw_only=True)
class RestartRow:
    """Pods of one owner that would be refused for the same reasons."""

    kind: str
    owner: str
    refusals: tuple[Violation, ...]
    is_so_today: bool
    pods: list[AdmittedPod] = field(default_factory=list)

    @property
    def shown(self) -> Sequence[AdmittedPod]:
        """The first of them, to be named."""
        return self.pods[:PODS_SHOWN]

    @property
    def others(self) -> int:
        """How many more there are."""
        return len(self.pods) - len(self.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """The running pods of a namespace, and those that would be refused if recreated."""

    running: RunningPods
    rows: Sequence[RestartRow]

    @property
    def refused(self) -> int:
        """How many would be refused."""
        return sum(len(row.pods) for row in self.rows)

    @property
    def newly(self) -> int:
        """How many of these are refused only by the draft."""
        return sum(len(row.pods) for row in self.rows if not row.is_so_today)

    @property
    def passing(self) -> int:
        """How many would be admitted."""
        return len(self.running.pods) - self.refused


def restarts_of(running: RunningPods, *, before: PolicySet, after: PolicySet) -> Restarts:
    """Evaluate each running pod as if recreated; raises DecodeError."""
    # By identity: pods of equal values are different pods.
    pods_by_id = {id(each.pod): each for each in running.pods}
    refused_pods = refused_restarts([each.pod for each in running.pods], before=before, after=after)
    by_reason: dict[tuple[object, ...], RestartRow] = {}
    for each in refused_pods:
        running_pod = pods_by_id[id(each.pod)]
        # A Deployment and not its ReplicaSet, as everywhere.
        owner = owners.of_reference(running_pod.owner, running_pod.pod.stands.get("metadata") or {})
        reasons = tuple(violation.message for violation in each.refusals)
        row_key = (owner.kind, owner.name or running_pod.pod.name, reasons, each.is_so_today)
        row = RestartRow(
            kind=owner.kind,
            owner=owner.name,
            refusals=each.refusals,
            is_so_today=each.is_so_today,
        )
        by_reason.setdefault(row_key, row).pods.append(running_pod)
    order = sorted(by_reason.values(), key=lambda row: (row.is_so_today, -len(row.pods), row.owner))
    return Restarts(running=running, rows=order)


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
