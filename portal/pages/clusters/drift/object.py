"""The page of one synced object: its three sides, its resolution, its revisions."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.shortcuts import get_object_or_404, redirect

from policies import services
from policies.models import PolicyRevision
from portal.pages.clusters.drift.list import STATE_WORDS
from portal.pages.clusters.drift.sides import (
    Side,
    choices_of,
    lines_of_manifest,
    normal_form,
    sides_of,
)
from portal.pages.views import NO_NAMESPACE, ClusterPage, object_address, whole_number
from sync import reconcile
from sync.models import SyncedObject
from sync.passes import resolution, undo
from sync.values import READ_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from policies.models import Recorded


RESOLVABLE: Final = (SyncedObject.State.CONFLICT, SyncedObject.State.DRIFTED)
"""States that a person's choice ends."""
RESOLVED: Final = "resolved: the next pass carries it out"
SIDES: Final = ("ours", "theirs")
OVERTAKEN: Final = "One of the sides changed after this page was shown. Look again, then choose."
SHOWN: Final = 10
CHOSEN: Final = {"ours": "took all of ours", "theirs": "took all of theirs", "undone": "undid it"}


class ObjectView(ClusterPage):
    """The three sides of an object; its form resolves the differences."""

    template_name = "clusters/object.html"
    permission = "sync.change_syncedobject"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The sides, the choices and the object's state in words."""
        thing = self.find_object()
        ours = our_object(thing)
        manifest = normal_form(ours.to_manifest() if ours else None)
        allowed = self.may(self.permission)
        return super().get_context_data(
            **kwargs,
            thing=thing,
            seen=seen(thing, ours),
            state_words=_state_words(thing),
            sides=sides_of(thing.base, manifest, thing.theirs),
            differences=choices_of(thing, manifest),
            read_only=thing.kind in READ_KINDS,
            has_both=bool(ours and thing.live),
            may_resolve=allowed and thing.state in RESOLVABLE and thing.kind not in READ_KINDS,
            may_own=allowed and self.may("sync.add_syncownership"),
            may_undo=allowed,
            decisions=decisions_of(thing),
            revisions=revisions_of(thing),
        )

    def find_object(self) -> SyncedObject:
        """The object of the address; 404 for one that no pass has compared."""
        names = self.kwargs
        namespace = "" if names["namespace"] == NO_NAMESPACE else names["namespace"]
        return get_object_or_404(
            SyncedObject,
            cluster=self.cluster,
            kind=names["kind"],
            namespace=namespace,
            name=names["name"],
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Apply the choice if both sides are still as shown; else show them again."""
        thing = self.find_object()
        ours = our_object(thing)
        if request.POST.get("seen") != seen(thing, ours):
            return self._refuse(OVERTAKEN, 409)
        try:
            return self._settle(thing, request.POST.get("take", ""), revision=_revision(ours))
        except reconcile.ResolutionError as error:
            return self._refuse(str(error), 422)
        except ValidationError as error:
            return self._refuse(" ".join(error.messages), 422)

    def _settle(self, thing: SyncedObject, take: str, *, revision: int) -> HttpResponse:
        if take == "ownership":
            if not self.may("sync.add_syncownership"):
                raise PermissionDenied
            names = {"namespace": thing.namespace, "kind": thing.kind, "name": thing.name}
            resolution.take_ownership(self.cluster, self.username, **names)
            messages.success(self.request, "The portal owns this object from now on.")
            return redirect(object_address(self.cluster.name, thing))
        author = {"user": self.username, "reason": self.request.POST.get("reason", "")[:1000]}
        if take == "undo":
            number = whole_number(self.request.POST.get("number", ""))
            run = undo.undo(thing, number=number, **author)
            messages.success(self.request, f"Undone: {thing.kind} {thing.name}.")
        else:
            choices = take if take in SIDES else self._choices(thing)
            run = resolution.resolve(thing, choices=choices, revision=revision, **author)
            words = f"Resolved: {thing.kind} {thing.name}. This run writes it."
            messages.success(self.request, words)
        return redirect("cluster-run", self.cluster.name, run.uid)

    def _choices(self, thing: SyncedObject) -> dict[str, str]:
        """The side chosen for each field; every field needs one."""
        post = self.request.POST
        ours = our_object(thing)
        found = choices_of(thing, normal_form(ours.to_manifest() if ours else None))
        chosen = {each.field: post.get(f"choice-{each.number}", "") for each in found}
        if not chosen or any(side not in SIDES for side in chosen.values()):
            raise ValidationError("Choose ours or theirs for every field.", code="incomplete")
        return chosen

    def _refuse(self, message: str, status: int) -> HttpResponse:
        context = self.get_context_data(**self.kwargs, form_error=message)
        return self.render_to_response(context, status=status)


def _state_words(thing: SyncedObject) -> str:
    """The state in words; a resolved one lasts until the next pass."""
    if thing.state in RESOLVABLE and thing.base == thing.theirs:
        return RESOLVED
    return STATE_WORDS[SyncedObject.State(thing.state)]


def our_object(thing: SyncedObject) -> Recorded | None:
    """The policy that the portal stores under the object's names."""
    # The cluster may have objects of kinds that the portal compares and does not store.
    if thing.kind not in {*services.KINDS, *READ_KINDS}:
        return None
    found: Recorded | None = services.find_object(
        thing.cluster, kind=thing.kind, name=thing.name, namespace=thing.namespace
    )
    return found


def seen(thing: SyncedObject, ours: Recorded | None) -> str:
    """Both sides' versions as one word: a choice holds only for the versions that were shown."""
    return f"{thing.version}.{thing.resource_version}.{_revision(ours)}"


def _revision(ours: Recorded | None) -> int:
    return ours.revision if ours else 0


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
    return [Revision(one, _changes(one.before, one.after)) for one in found[:SHOWN]]


def decisions_of(thing: SyncedObject) -> list[ResolutionRecord]:
    """The last resolutions, newest first; at most one of them can be undone."""
    undoable = undo.can_be_undone(thing)
    records = []
    for one in undo.decisions(thing):
        sides: dict[str, Any] = (one.before or {})["spec"]
        record = ResolutionRecord(
            revision=one,
            words=_words((one.after or {})["spec"]["choices"]),
            sides=sides_of(sides["base"], sides["ours"], sides["theirs"]),
            is_undoable=undoable is not None and undoable.pk == one.pk,
            comes_back_open=undo.comes_back_open(thing, one),
        )
        records.append(record)
    return records


def _words(choices: str | Mapping[str, str]) -> str:
    if isinstance(choices, str):
        return CHOSEN.get(choices, choices)
    return "chose " + ", ".join(f"{field}: {side}" for field, side in choices.items())


def _changes(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> list[tuple[str, str]]:
    """All lines of both, with the added and the removed ones."""
    compared = difflib.ndiff(lines_of_manifest(before), lines_of_manifest(after))
    return [(line[0], line[2:]) for line in compared if line[0] != "?"]
