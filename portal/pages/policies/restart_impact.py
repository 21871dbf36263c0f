"""The editor's preview of restarts: running pods that a draft would refuse if recreated."""

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

SHOWN: Final = 5


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
        return self.pods[:SHOWN]

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
    found = {id(each.pod): each for each in running.pods}
    refused = refused_restarts([each.pod for each in running.pods], before=before, after=after)
    rows: dict[tuple[object, ...], RestartRow] = {}
    for each in refused:
        pod = found[id(each.pod)]
        # A Deployment and not its ReplicaSet, as everywhere.
        owner = owners.of_reference(pod.owner, pod.pod.stands.get("metadata") or {})
        messages = tuple(violation.message for violation in each.refusals)
        key = (owner.kind, owner.name or pod.pod.name, messages, each.is_so_today)
        row = RestartRow(
            kind=owner.kind,
            owner=owner.name,
            refusals=each.refusals,
            is_so_today=each.is_so_today,
        )
        rows.setdefault(key, row).pods.append(pod)
    order = sorted(rows.values(), key=lambda row: (row.is_so_today, -len(row.pods), row.owner))
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

    def outcome(self, state: EditorState) -> dict[str, Any]:
        """The editor's context with the pods that would be refused."""
        found = super().outcome(state)
        if state.draft.manifest is None:
            return {**found, "restarts_error": "The YAML cannot be read yet: correct it first."}
        before = found["before"]
        try:
            after = with_unsaved(before, [state.draft.manifest], as_enforced=True)
            running = running_in(self.cluster, self.namespace_name)
            restarts = restarts_of(running, before=before, after=after)
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
    running = running_in(place.cluster, place.namespace.name)
    try:
        after = with_unsaved(before, [manifest])
        newly = restarts_of(running, before=before, after=after).newly
    except DecodeError:
        return ()
    if newly * 100 <= settings.GATEHOUSE_CONFIRM_REFUSED_PERCENT * len(running.pods):
        return ()
    return (f"{newly} of {len(running.pods)} running pods would be refused if recreated",)


danger.sources.append(refused_running)
