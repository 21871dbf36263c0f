"""What of a cluster the portal may write: given and taken back by people, never by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect

from policies.models import SyncedObject, SyncOwnership
from policies.sync import resolving
from policies.views.access import ClusterPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class OwnershipView(ClusterPage):
    """What is owned; forms to give a namespace or the cluster, and to take it back."""

    template_name = "policies/syncownership_list.html"
    permission = "policies.add_syncownership"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What is owned, and where there is something that is not."""
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
            may_release=self.request.user.has_perm("policies.delete_syncownership"),
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Give or take back, as the button said."""
        if "release" in request.POST:
            self._release(request.POST["release"])
        else:
            self._take(request.POST.get("namespace", "").strip())
        return redirect("cluster-ownership", self.cluster.name)

    def _take(self, namespace: str) -> None:
        known = SyncedObject.objects.filter(cluster=self.cluster, namespace=namespace, gone=None)
        if namespace and not known.exists():
            messages.error(self.request, "There is nothing known in a namespace of that name.")
            return
        resolving.take_ownership(self.cluster, self.username, namespace=namespace)
        what = f"namespace {namespace}" if namespace else "the whole cluster"
        messages.success(self.request, f"The portal owns {what} from now on.")

    def _release(self, number: str) -> None:
        if not self.request.user.has_perm("policies.delete_syncownership"):
            raise PermissionDenied
        if not number.isdecimal():
            raise Http404
        owned = get_object_or_404(SyncOwnership, cluster=self.cluster, pk=int(number))
        names = {"namespace": owned.namespace, "kind": owned.kind, "name": owned.name}
        resolving.release_ownership(self.cluster, self.username, **names)
        messages.success(self.request, "Taken back: the portal only reads there from now on.")
