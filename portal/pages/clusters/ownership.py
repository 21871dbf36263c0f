"""OwnershipView: SyncOwnerships of places (object, namespace, whole cluster) taken, released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponseBadRequest, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from policies import services
from portal.pages.clusters.head import ClusterTabPage
from portal.pages.views import whole_number
from sync.enforcement.ownership_preview import ACTION_WORDS, preview_ownership
from sync.models import SyncedObject, SyncOwnership
from sync.passes import resolution

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from policies.models import Cluster

    OwnedPlace = dict[str, str]

TAKING: Final = "sync.add_syncownership"
RELEASING: Final = "sync.delete_syncownership"
SCOPES: Final = ("objects", "namespaces", "cluster")
MOST: Final = 50
"""Objects of one form: those of a page."""
PLACES_SHOWN: Final = 3
"""Places that a message names."""


class OwnershipView(ClusterTabPage):
    """Ownerships of a cluster, and the forms that take and release them.

    The list of objects sends its form here, too: ``do`` is take or release; ``scope`` is the
    selected ``object`` rows, their namespaces or the cluster.
    """

    template_name = "clusters/ownership.html"
    tab = "settings"
    permission = TAKING

    def permission_for(self, request: HttpRequest) -> str:
        """Releasing needs a permission of its own, and only that."""
        is_back = "release" in request.POST or request.POST.get("do") == "release"
        return RELEASING if is_back else TAKING

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The ownerships, and the namespaces with unowned objects."""
        unowned_objects = SyncedObject.objects.filter(
            cluster=self.cluster, gone=None, state=SyncedObject.State.UNOWNED
        )
        names = unowned_objects.exclude(namespace="").order_by("namespace").values_list("namespace")
        place = self.request.GET.get("namespace", "").replace("\0", "")[:63]
        return super().get_context_data(
            **kwargs,
            **(_preview(self.cluster, place) if "preview" in self.request.GET else {}),
            place=place,
            ownerships=SyncOwnership.objects.filter(cluster=self.cluster).order_by(
                "namespace", "kind", "name"
            ),
            unowned=unowned_objects.count(),
            namespaces=[name for (name,) in names.distinct()],
            may_release=self.may(RELEASING),
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Take or release ownership, as the form and its button say."""
        if "scope" in request.POST:
            return self._from_list(request.POST["scope"], request.POST.get("do", ""))
        if "release" in request.POST:
            ownership_id = whole_number(request.POST["release"])
            held = get_object_or_404(SyncOwnership, cluster=self.cluster, pk=ownership_id)
            owned_names = {"namespace": held.namespace, "kind": held.kind, "name": held.name}
            self._release_all([owned_names])
        else:
            self._take_namespace(request.POST.get("namespace", "").strip())
        return redirect("cluster-ownership", self.cluster.name)

    def _take_namespace(self, namespace: str) -> None:
        """Take a namespace of which something is known, or the whole cluster."""
        try:
            if namespace:
                resolution.require_known_namespace(self.cluster, namespace)
            self._take_all([{"namespace": namespace, "kind": "", "name": ""}])
        except ValidationError as error:
            messages.error(self.request, " ".join(error.messages))

    def _from_list(self, scope: str, action: str) -> HttpResponse:
        """Take or release ownership of the selected objects, and show the list again."""
        if scope not in SCOPES or action not in ("take", "release"):
            return HttpResponseBadRequest()
        owned_places = self._places(scope)
        if not owned_places:
            messages.error(self.request, "Select at least one object in the list.")
        elif action == "take":
            self._take_all(owned_places)
        else:
            self._release_all(owned_places)
        list_query = QueryDict(self.request.POST.get("back", "")).urlencode()
        list_address = reverse("cluster-objects", args=[self.cluster.name])
        return redirect(f"{list_address}?{list_query}" if list_query else list_address)

    def _places(self, scope: str) -> list[OwnedPlace]:
        if scope == "cluster":
            return [{"namespace": "", "kind": "", "name": ""}]
        # At most 18 digits: a longer number overflows the column and fails the query.
        pks = [pk for pk in self.request.POST.getlist("object") if pk.isdecimal()][:MOST]
        chosen_objects = SyncedObject.objects.filter(
            cluster=self.cluster, pk__in=[int(pk[:18]) for pk in pks], kind__in=services.KINDS
        ).order_by("namespace", "kind", "name")
        if scope == "namespaces":
            chosen_namespaces = dict.fromkeys(thing.namespace for thing in chosen_objects)
            return [{"namespace": name, "kind": "", "name": ""} for name in chosen_namespaces]
        return [
            {"namespace": thing.namespace, "kind": thing.kind, "name": thing.name}
            for thing in chosen_objects
        ]

    def _take_all(self, places: list[OwnedPlace]) -> None:
        # One transaction: ownership of all of them or of none.
        with services.policy_write(self.cluster):
            for place in places:
                resolution.take_ownership(self.cluster, self.username, **place)
        messages.success(self.request, f"The portal now owns {_places_text(places)}.")

    def _release_all(self, places: list[OwnedPlace]) -> None:
        with services.policy_write(self.cluster):
            released = [
                owned_place
                for owned_place in places
                if resolution.release_ownership(self.cluster, self.username, **owned_place)
            ]
        if released:
            words = f"Released: {_places_text(released)}. The portal only reads there from now on."
            messages.success(self.request, words)
        if remaining := len(places) - len(released):
            messages.warning(
                self.request,
                f"{remaining} of them are not owned by themselves: an owned namespace or the whole "
                "cluster is released as such.",
            )


def _preview(cluster: Cluster, namespace: str) -> dict[str, Any]:
    """What ownership of a namespace, or of the whole cluster, would change."""
    found = preview_ownership(cluster, namespace=namespace)
    changed = [each for each in found if each.verdict.action != "none"]
    return {
        "is_previewed": True,
        "changed": [(each, ACTION_WORDS[each.verdict.action]) for each in changed[:MOST]],
        "changed_count": len(changed),
        "known_count": len(found),
    }


def _places_text(places: list[OwnedPlace]) -> str:
    other_places = f" and {len(places) - PLACES_SHOWN} more" if len(places) > PLACES_SHOWN else ""
    return ", ".join(_place_in_words(owned) for owned in places[:PLACES_SHOWN]) + other_places


def _place_in_words(place: OwnedPlace) -> str:
    if place["kind"]:
        return f"{place['kind']} {place['namespace']}/{place['name']}"
    return f"namespace {place['namespace']}" if place["namespace"] else "the whole cluster"
