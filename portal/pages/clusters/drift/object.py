"""ObjectView, the page of one synced object: resolved by choices or undone; its last revisions."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.shortcuts import get_object_or_404, redirect

from policies.models import PolicyRevision
from portal.pages.clusters.drift.queue import RESOLVABLE, STATE_WORDS
from portal.pages.clusters.drift.sides import (
    Side,
    choices_of,
    lines_of_manifest,
    sides_of,
)
from portal.pages.clusters.head import ClusterTabPage
from portal.pages.views import NO_NAMESPACE, object_address, whole_number
from sync import reconcile
from sync.models import SyncedObject
from sync.passes import resolution, undo
from sync.passes.object_sides import normal_form, our_object, our_revision, seen
from sync.values import READ_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse


SIDES: Final = ("ours", "theirs")
OVERTAKEN: Final = (
    "One of the sides changed after this page was shown. Review it again, then choose."
)
REVISIONS_SHOWN: Final = 10
CHOSEN: Final = {"ours": "took all of ours", "theirs": "took all of theirs", "undone": "undid it"}


class ObjectView(ClusterTabPage):
    """The three sides of an object; its form resolves the differences."""

    template_name = "clusters/object.html"
    tab = "drift"
    permission = "sync.change_syncedobject"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The sides, the choices and the object's state in words."""
        thing = self.find_object()
        ours = our_object(thing)
        manifest = normal_form(ours.to_manifest() if ours else None)
        may_resolve = self.may(self.permission)
        return super().get_context_data(
            **kwargs,
            thing=thing,
            seen=seen(thing, ours),
            state_words=STATE_WORDS[SyncedObject.State(thing.state)],
            sides=sides_of(thing.base, manifest, thing.theirs),
            differences=choices_of(thing, manifest),
            read_only=thing.kind in READ_KINDS,
            has_both=bool(ours and thing.live),
            may_resolve=may_resolve and thing.state in RESOLVABLE and thing.kind not in READ_KINDS,
            may_own=may_resolve and self.may("sync.add_syncownership"),
            may_undo=may_resolve,
            decisions=decisions_of(thing),
            revisions=revisions_of(thing),
        )

    def find_object(self) -> SyncedObject:
        """The object of the address; 404 for one that no pass has compared."""
        address_names = self.kwargs
        namespace = "" if address_names["namespace"] == NO_NAMESPACE else address_names["namespace"]
        return get_object_or_404(
            SyncedObject,
            cluster=self.cluster,
            kind=address_names["kind"],
            namespace=namespace,
            name=address_names["name"],
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Apply the choice if both sides are still as shown; else show them again."""
        thing = self.find_object()
        ours = our_object(thing)
        if request.POST.get("seen") != seen(thing, ours):
            return self._refuse(OVERTAKEN, 409)
        try:
            return self._carry_out(thing, request.POST.get("take", ""), revision=our_revision(ours))
        except reconcile.ResolutionError as error:
            return self._refuse(str(error), 422)
        except ValidationError as error:
            return self._refuse(" ".join(error.messages), 422)

    def _carry_out(self, thing: SyncedObject, action: str, *, revision: int) -> HttpResponse:
        if action == "ownership":
            if not self.may("sync.add_syncownership"):
                raise PermissionDenied
            object_names = {"namespace": thing.namespace, "kind": thing.kind, "name": thing.name}
            resolution.take_ownership(self.cluster, self.username, **object_names)
            messages.success(self.request, "The portal now owns this object.")
            return redirect(object_address(self.cluster.name, thing))
        author = {"user": self.username, "reason": self.request.POST.get("reason", "")[:1000]}
        if action == "undo":
            number = whole_number(self.request.POST.get("number", ""))
            run = undo.undo(thing, number=number, **author)
            messages.success(self.request, f"Undone: {thing.kind} {thing.name}.")
        else:
            choices = action if action in SIDES else self._choices(thing)
            run = resolution.resolve(thing, choices=choices, revision=revision, **author)
            resolved_words = f"Resolved: {thing.kind} {thing.name}. This run writes it."
            messages.success(self.request, resolved_words)
        return redirect("cluster-run", self.cluster.name, run.uid)

    def _choices(self, thing: SyncedObject) -> dict[str, str]:
        """The side chosen for each field; every field needs one."""
        sent = self.request.POST
        ours = our_object(thing)
        offered_choices = choices_of(thing, normal_form(ours.to_manifest() if ours else None))
        chosen = {each.field: sent.get(f"choice-{each.number}", "") for each in offered_choices}
        if not chosen or any(side not in SIDES for side in chosen.values()):
            raise ValidationError("Choose ours or theirs for every field.", code="incomplete")
        return chosen

    def _refuse(self, message: str, status: int) -> HttpResponse:
        context = self.get_context_data(**self.kwargs, form_error=message)
        return self.render_to_response(context, status=status)


@dataclass(frozen=True, slots=True)
class Revision:
    """One write of our side; a line is (``+``, ``-`` or a space, text)."""

    revision: PolicyRevision
    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ResolutionRecord:
    """One resolution in words, with all sides as they were."""

    revision: PolicyRevision
    words: str
    sides: Sequence[Side]
    is_undoable: bool
    comes_back_open: bool


def revisions_of(thing: SyncedObject) -> list[Revision]:
    """The last writes of our side, newest first."""
    names = {"kind": thing.kind, "namespace": thing.namespace, "name": thing.name}
    found = PolicyRevision.objects.of(cluster=thing.cluster.name, **names).order_by("-number")
    return [Revision(one, _changed_lines(one.before, one.after)) for one in found[:REVISIONS_SHOWN]]


def decisions_of(thing: SyncedObject) -> list[ResolutionRecord]:
    """The last resolutions, newest first; at most one of them can be undone."""
    undoable = undo.can_be_undone(thing)
    records = []
    for decision in undo.decisions(thing):
        sides_before: dict[str, Any] = (decision.before or {})["spec"]
        resolution_record = ResolutionRecord(
            revision=decision,
            words=_choice_words((decision.after or {})["spec"]["choices"]),
            sides=sides_of(sides_before["base"], sides_before["ours"], sides_before["theirs"]),
            is_undoable=undoable is not None and undoable.pk == decision.pk,
            comes_back_open=undo.comes_back_open(thing, decision),
        )
        records.append(resolution_record)
    return records


def _choice_words(choices: str | Mapping[str, str]) -> str:
    if isinstance(choices, str):
        return CHOSEN.get(choices, choices)
    return "chose " + ", ".join(f"{field}: {side}" for field, side in choices.items())


def _changed_lines(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> list[tuple[str, str]]:
    """All lines of both, with the added and the removed ones."""
    ndiff_lines = difflib.ndiff(lines_of_manifest(before), lines_of_manifest(after))
    return [(line[0], line[2:]) for line in ndiff_lines if line[0] != "?"]
