"""SettleView: one or many drifted objects settled with a reason, after their impact was shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Count
from django.http import Http404, HttpResponseBadRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from policies import roles
from policies.plurals import counted
from portal.pages.clusters.drift.impact import ACCEPT, RELEASE, RESTORE, impact_of
from portal.pages.clusters.drift.queue import can_be_settled, line_of
from portal.pages.views import PortalPage
from sync.models import SyncedObject, SyncOwnership
from sync.passes import resolution
from sync.passes.object_sides import our_object, our_objects, our_revision, seen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse, QueryDict

MOST: Final = 50
"""Objects of one settlement: those of a page."""
DIALOG: Final = "settle"
OVERTAKEN: Final = "One of the sides changed after this was shown. Review it again, then settle."


@dataclass(frozen=True, slots=True)
class Settlement:
    """A way to end a difference: its words, its permission, and what it leads to."""

    title: str
    button: str
    done: str
    permission: str
    words: str


SETTLEMENTS: Final = {
    RESTORE: Settlement(
        "Restore the portal's version",
        "Restore",
        "Restored",
        "sync.change_syncedobject",
        "The portal writes its own version to the cluster; what was changed there is overwritten.",
    ),
    ACCEPT: Settlement(
        "Accept the cluster's version",
        "Accept",
        "Accepted",
        "sync.change_syncedobject",
        "The cluster's version is stored here as a new revision; nothing is written there.",
    ),
    RELEASE: Settlement(
        "Release ownership",
        "Release",
        "Released",
        "sync.delete_syncownership",
        "The portal stops writing there and only follows: its own version becomes the cluster's.",
    ),
}


class SettleView(PortalPage):
    """The impact of a settlement and its form; the queue shows it in a dialog."""

    template_name = "clusters/settle.html"
    things: list[SyncedObject]

    def may_post(self) -> bool:
        """Whoever may settle in the cluster of each object: ``post`` looks at them."""
        return True

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Show what the settlement of the chosen objects would do."""
        action = request.GET.get("do", "")
        if action not in SETTLEMENTS:
            return HttpResponseBadRequest()
        self.things = chosen_objects(request.user, request.GET)
        if request.headers.get("HX-Target") == DIALOG:
            self.template_name = "clusters/_settle.html"
        return self._answer(action, request.GET.get("back", ""))

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Settle all of them or none."""
        action, sent = request.POST.get("do", ""), request.POST
        if action not in SETTLEMENTS:
            return HttpResponseBadRequest()
        self.things = chosen_objects(request.user, sent)
        if not self.things:
            raise Http404
        if not self._may(action):
            raise PermissionDenied
        reason, back = sent.get("reason", "").strip()[:1000], sent.get("back", "")
        if self._is_overtaken(sent):
            return self._answer(action, back, error=OVERTAKEN, status=409)
        if problem_of(self.things, action):
            return self._answer(action, back, status=422)
        if not reason:
            error = "Give a reason: it stays on record."
            return self._answer(action, back, error=error, status=422)
        try:
            settle(self.things, action, user=self.username, reason=reason)
        except ValidationError as error:
            return self._answer(action, back, error=" ".join(error.messages), status=422)
        messages.success(request, f"{SETTLEMENTS[action].done}: {_names(self.things)}.")
        return redirect(_safe(back))

    def _is_overtaken(self, sent: QueryDict) -> bool:
        ours = our_objects(self.things)
        return any(
            sent.get(f"seen-{thing.pk}") != seen(thing, ours[thing.pk]) for thing in self.things
        )

    def _may(self, action: str) -> bool:
        permission = SETTLEMENTS[action].permission
        clusters = {thing.cluster.name for thing in self.things}
        return all(roles.may(self.request.user, permission, cluster=name) for name in clusters)

    def _answer(
        self, action: str, back: str, *, error: str = "", status: int = 200
    ) -> HttpResponse:
        things = self.things
        problem, ours = problem_of(things, action), our_objects(things)
        context = self.get_context_data(
            action=action,
            settlement=SETTLEMENTS[action],
            rows=[(line_of(thing), seen(thing, ours[thing.pk])) for thing in things],
            problem=problem,
            impact=None if problem else impact_of(things, action),
            places=owned_places(things) if action == RELEASE and not problem else [],
            may_settle=bool(things) and self._may(action),
            form_error=error,
            back=_safe(back),
        )
        return self.render_to_response(context, status=status)


def chosen_objects(user: Any, asked: QueryDict) -> list[SyncedObject]:
    """The objects that were chosen, as far as the user sees their clusters as a whole."""
    # At most 18 digits: a longer number overflows the column and fails the query.
    keys = [int(key[:18]) for key in asked.getlist("object") if key.isdecimal()][:MOST]
    found = SyncedObject.objects.filter(gone=None, pk__in=keys).select_related("cluster")
    seen_objects = roles.visible(found, user, cluster="cluster__name", whole=True)
    # In the order of names: two settlements lock their clusters in the same order.
    return list(seen_objects.order_by("cluster__name", "namespace", "kind", "name"))


def problem_of(things: Sequence[SyncedObject], action: str) -> str:
    """Why these objects cannot be settled so; empty if they can."""
    if not things:
        return "No object is selected."
    settled = [thing for thing in things if not can_be_settled(thing)]
    if settled:
        return f"Can no longer be settled: {_names(settled)}."
    conflicts = [thing for thing in things if thing.state == SyncedObject.State.CONFLICT]
    if conflicts and len(things) > 1:
        return f"Changed on both sides, settle each by itself: {_names(conflicts)}."
    owned = ownerships_of(things)
    unowned = [thing for thing in things if owned[thing.pk] is None]
    if unowned and action != ACCEPT:
        return f"Not owned by the portal: {_names(unowned)}."
    return ""


def ownerships_of(things: Sequence[SyncedObject]) -> dict[int, SyncOwnership | None]:
    """The narrowest ownership that covers each object, by the object's key; one query."""
    clusters = {thing.cluster_id for thing in things}
    owned = SyncOwnership.objects.filter(cluster__in=clusters).select_related("cluster")
    by_place = {(each.cluster_id, each.namespace, each.kind, each.name): each for each in owned}
    return {thing.pk: _narrowest(thing, by_place) for thing in things}


def _narrowest(
    thing: SyncedObject, owned: Mapping[tuple[int, str, str, str], SyncOwnership]
) -> SyncOwnership | None:
    places = (
        (thing.cluster_id, thing.namespace, thing.kind, thing.name),
        (thing.cluster_id, thing.namespace, "", ""),
        (thing.cluster_id, "", "", ""),
    )
    return next((owned[place] for place in places if place in owned), None)


def _owned(things: Sequence[SyncedObject]) -> list[SyncOwnership]:
    """The ownerships of all of them, each once."""
    found = {each.pk: each for each in ownerships_of(things).values() if each}
    return list(found.values())


@dataclass(frozen=True, slots=True)
class OwnedPlace:
    """An ownership that would end, in words, and how many objects it covers."""

    words: str
    objects: int


def owned_places(things: Sequence[SyncedObject]) -> list[OwnedPlace]:
    """The ownerships that a release would end."""
    owned = _owned(things)
    covered = SyncedObject.objects.filter(
        cluster__in={each.cluster_id for each in owned}, gone=None
    )
    numbers: Counter[tuple[int, str]] = Counter()
    counted_objects = covered.order_by().values_list("cluster", "namespace")
    for cluster_id, namespace, number in counted_objects.annotate(Count("pk")):
        numbers[cluster_id, namespace] = number
    return [_owned_place(each, numbers) for each in owned]


def _owned_place(owned: SyncOwnership, numbers: Counter[tuple[int, str]]) -> OwnedPlace:
    if owned.kind:
        return OwnedPlace(f"{owned.kind} {owned.namespace}/{owned.name}", 1)
    if owned.namespace:
        words = f"everything in namespace {owned.namespace} of {owned.cluster.name}"
        return OwnedPlace(words, numbers[owned.cluster_id, owned.namespace])
    all_of_it = sum(
        number for (cluster, _), number in numbers.items() if cluster == owned.cluster_id
    )
    return OwnedPlace(f"everything in the cluster {owned.cluster.name}", all_of_it)


def settle(things: Sequence[SyncedObject], action: str, *, user: str, reason: str) -> None:
    """Settle all in one transaction; raises ``ValidationError`` if one of them cannot be."""
    with transaction.atomic():
        if action == RELEASE:
            for owned in _owned(things):
                place = {"namespace": owned.namespace, "kind": owned.kind, "name": owned.name}
                resolution.release_ownership(owned.cluster, user, reason=reason, **place)
            return
        choices = resolution.OURS if action == RESTORE else resolution.THEIRS
        for thing in things:
            revision = our_revision(our_object(thing))
            author = {"user": user, "reason": reason}
            resolution.resolve(thing, choices=choices, revision=revision, **author)


def _names(things: Sequence[SyncedObject]) -> str:
    if len(things) > 1:
        return counted(len(things), "objects")
    [thing] = things
    return f"{thing.kind} {thing.namespace}/{thing.name}".replace(" /", " ")


def _safe(back: str) -> str:
    """The page to return to, if it is one of ours."""
    is_ours = url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return back if is_ours and back.startswith("/") else reverse("drift")
