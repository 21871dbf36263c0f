"""The page of ownership: the objects of a cluster that the portal may write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import HttpResponseBadRequest, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from policies import services
from portal.pages.views import ClusterPage, whole_number
from sync.models import SyncedObject, SyncOwnership
from sync.passes import resolution

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    Place = dict[str, str]

TAKING: Final = "sync.add_syncownership"
RELEASING: Final = "sync.delete_syncownership"
SCOPES: Final = ("objects", "namespaces", "cluster")
MOST: Final = 50
"""Objects of one form: those of a page."""
SHOWN: Final = 3
"""Places that a message names."""


class OwnershipView(ClusterPage):
    """Ownerships of a cluster, and the forms that take and release them.

    The list of objects sends its form here, too: ``do`` is take or release; ``scope`` is the
    selected ``object`` rows, their namespaces or the cluster.
    """

    template_name = "clusters/ownership.html"
    permission = TAKING

    def permission_for(self, request: HttpRequest) -> str:
        """Releasing needs a permission of its own, and only that."""
        is_back = "release" in request.POST or request.POST.get("do") == "release"
        return RELEASING if is_back else TAKING

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The ownerships, and the namespaces with unowned objects."""
        unowned = SyncedObject.objects.filter(
            cluster=self.cluster, gone=None, state=SyncedObject.State.UNOWNED
        )
        names = unowned.exclude(namespace="").order_by("namespace").values_list("namespace")
        return super().get_context_data(
            **kwargs,
            ownerships=SyncOwnership.objects.filter(cluster=self.cluster).order_by(
                "namespace", "kind", "name"
            ),
            unowned=unowned.count(),
            namespaces=[name for (name,) in names.distinct()],
            may_release=self.may(RELEASING),
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Take or release ownership, as the form and its button say."""
        if "scope" in request.POST:
            return self._from_list(request.POST["scope"], request.POST.get("do", ""))
        if "release" in request.POST:
            number = whole_number(request.POST["release"])
            owned = get_object_or_404(SyncOwnership, cluster=self.cluster, pk=number)
            names = {"namespace": owned.namespace, "kind": owned.kind, "name": owned.name}
            self._release_all([names])
        else:
            namespace = request.POST.get("namespace", "").strip()
            objects = SyncedObject.objects.filter(cluster=self.cluster, gone=None)
            if namespace and not objects.filter(namespace=namespace).exists():
                messages.error(request, "Nothing is known in a namespace of that name.")
            else:
                self._take_all([{"namespace": namespace, "kind": "", "name": ""}])
        return redirect("cluster-ownership", self.cluster.name)

    def _from_list(self, scope: str, action: str) -> HttpResponse:
        """Take or release ownership of the selected objects, and show the list again."""
        if scope not in SCOPES or action not in ("take", "release"):
            return HttpResponseBadRequest()
        places = self._places(scope)
        if not places:
            messages.error(self.request, "No object is selected: select objects in the list first.")
        elif action == "take":
            self._take_all(places)
        else:
            self._release_all(places)
        back = QueryDict(self.request.POST.get("back", "")).urlencode()
        address = reverse("cluster-objects", args=[self.cluster.name])
        return redirect(f"{address}?{back}" if back else address)

    def _places(self, scope: str) -> list[Place]:
        if scope == "cluster":
            return [{"namespace": "", "kind": "", "name": ""}]
        # At most 18 digits: a longer number overflows the column and fails the query.
        numbers = [one for one in self.request.POST.getlist("object") if one.isdecimal()][:MOST]
        chosen = SyncedObject.objects.filter(
            cluster=self.cluster, pk__in=[int(one[:18]) for one in numbers], kind__in=services.KINDS
        ).order_by("namespace", "kind", "name")
        if scope == "namespaces":
            names = dict.fromkeys(thing.namespace for thing in chosen)
            return [{"namespace": name, "kind": "", "name": ""} for name in names]
        return [
            {"namespace": thing.namespace, "kind": thing.kind, "name": thing.name}
            for thing in chosen
        ]

    def _take_all(self, places: list[Place]) -> None:
        # One transaction: ownership of all of them or of none.
        with services.policy_write(self.cluster):
            for place in places:
                resolution.take_ownership(self.cluster, self.username, **place)
        messages.success(self.request, f"The portal owns {_listed(places)} from now on.")

    def _release_all(self, places: list[Place]) -> None:
        with services.policy_write(self.cluster):
            done = [
                place
                for place in places
                if resolution.release_ownership(self.cluster, self.username, **place)
            ]
        if done:
            words = f"Released: {_listed(done)}. The portal only reads there from now on."
            messages.success(self.request, words)
        if left := len(places) - len(done):
            messages.warning(
                self.request,
                f"{left} of them are not owned by themselves: an owned namespace or the whole "
                "cluster is released as such.",
            )


def _listed(places: list[Place]) -> str:
    rest = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return ", ".join(_in_words(place) for place in places[:SHOWN]) + rest


def _in_words(place: Place) -> str:
    if place["kind"]:
        return f"{place['kind']} {place['namespace']}/{place['name']}"
    return f"namespace {place['namespace']}" if place["namespace"] else "the whole cluster"
