"""PortalPage and ClusterPage, base views: dispatch, may, scope; addresses; whole_number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect
from django.urls import NoReverseMatch, reverse
from django.utils.cache import add_never_cache_headers
from django.views.generic import TemplateView

from policies import roles
from policies.drafts.kinds import BY_NAME
from policies.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

    from policies.drafts.kinds import EditableKind
    from policies.models import PolicyRevision
    from sync.models import SyncedObject, SyncResult


_COLUMN_DIGITS: Final = 19
NO_NAMESPACE: Final = "-"
"""Stands for the namespace of an object that has none; no namespace can be called so."""


def object_address(cluster: str, thing: SyncedObject | SyncResult) -> str:
    """The page of an object; empty where its names do not fit into an address."""
    address_names = {
        "cluster": cluster,
        "kind": thing.kind,
        "namespace": thing.namespace or NO_NAMESPACE,
        "name": thing.name,
    }
    try:
        return reverse("cluster-object", kwargs=address_names)
    except NoReverseMatch:
        return ""


def names_of(kind: EditableKind, *, cluster: str, namespace: str, name: str) -> dict[str, str]:
    """The arguments of a policy's routes."""
    route_names = {"cluster": cluster}
    if kind.is_namespaced:
        route_names |= {"namespace": namespace, "plural": kind.plural}
    return route_names if kind.is_configuration else {**route_names, "name": name}


def route_of(kind: EditableKind) -> str:
    """The beginning of the names of a kind's routes."""
    if kind.is_configuration:
        return "limited-resources"
    return "policy" if kind.is_namespaced else "priority-class"


def revision_address(revision: PolicyRevision, before: int = 0) -> str:
    """The page of a revision, or of one before; empty for kinds without pages of versions."""
    kind = BY_NAME.get(revision.kind)
    if kind is None or kind.is_namespaced is not bool(revision.namespace):
        return ""
    names: dict[str, Any] = dict(
        names_of(kind, cluster=revision.cluster, namespace=revision.namespace, name=revision.name)
    )
    names["number"] = revision.number - before
    return reverse(f"{route_of(kind)}-revision", kwargs=names)


PAUSING: Final = "sync.change_clusterconnection"
"""The permission to pause a cluster's sync, and to resume it."""


AT: Final = "at"
"""The parameter of an address that names an instant of the past."""
PAST: Final[dict[str, Callable[..., HttpResponseBase]]] = {}
"""Pages as of an instant, by the name of the route that shows the present; ``past`` fills it."""


class PortalPage(LoginRequiredMixin, TemplateView):
    """A page for signed-in people, whose form may need a permission. Never cached."""

    permission: ClassVar[str] = ""
    """The permission that the page's form needs; a page without one has no form."""
    somewhere: ClassVar[str] = ""
    """The permission without which, in whatever place, the page does not open."""
    is_past: ClassVar[bool] = False
    """Whether the page itself shows the past."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Check sign-in and permission before the page does anything."""
        if not request.user.is_authenticated:
            return self.handle_no_permission()
        if self.somewhere and not roles.may_somewhere(request.user, self.somewhere):
            raise PermissionDenied
        # PostgreSQL refuses NUL in texts with an error; no stored name has one.
        if any("\0" in str(value) for value in kwargs.values()):
            raise Http404
        if AT in request.GET and not self.is_past:
            return as_of(request, kwargs)
        self.find(kwargs)
        if request.method == "POST" and not self.may_post():
            raise PermissionDenied
        response = super().dispatch(request, *args, **kwargs)
        add_never_cache_headers(response)
        return response

    def find(self, names: dict[str, Any]) -> None:
        """Find the objects that the address names, or raise Http404."""

    def may_post(self) -> bool:
        """Whether the signed-in person may send the page's form."""
        return self.may(self.permission_for(self.request))

    def permission_for(self, _request: HttpRequest) -> str:
        """The permission of this form; a page with several forms overrides it."""
        return self.permission

    def scope(self) -> roles.RoleScope:
        """The place that the page's form changes; the whole fleet by default."""
        return roles.RoleScope()

    def may(self, permission: str) -> bool:
        """Whether the signed-in person has the permission in the page's place."""
        at = self.scope()
        return roles.may(self.request.user, permission, cluster=at.cluster, namespace=at.namespace)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add whether the page's form may be sent."""
        may_send = bool(self.permission) and self.may(self.permission)
        return super().get_context_data(**{"may_write": may_send, **kwargs})

    @property
    def username(self) -> str:
        """The signed-in person, as history names people."""
        return self.request.user.get_username()


def as_of(request: HttpRequest, names: dict[str, Any]) -> HttpResponseBase:
    """The page of an address in the past; a page that has no past is led to as it is now."""
    route = request.resolver_match.url_name if request.resolver_match else ""
    if past_page := PAST.get(route or ""):
        return past_page(request, **names)
    query = request.GET.copy()
    query.pop(AT)
    messages.info(request, "This page has no past: it shows the present.")
    return redirect(f"{request.path}?{query.urlencode()}" if query else request.path)


class ClusterPage(PortalPage):
    """A page about the cluster that the address names, or about a namespace of it.

    Unknown ones are 404, and so are those that a person may not see.
    """

    cluster: Cluster
    takes_part: ClassVar[bool] = False
    """Whether it opens for those who see some namespaces, and shows only these."""

    def find(self, names: dict[str, Any]) -> None:
        """Find the cluster; 404 for those who may not see it."""
        self.cluster = find_cluster(str(names["cluster"]))
        # Hidden clusters answer 404 and not 403, which would reveal their names.
        namespace_part = None if self.takes_part else self.scope().namespace
        if not roles.sees(self.request.user, self.cluster.name, namespace_part):
            raise Http404

    def scope(self) -> roles.RoleScope:
        """The namespace that the address names, or the cluster as a whole."""
        namespace = str(self.kwargs.get("namespace", ""))
        return roles.RoleScope(self.cluster.name, "" if namespace == NO_NAMESPACE else namespace)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the cluster, whether its page may be opened, and its sync paused from here."""
        sees_cluster = roles.sees(self.request.user, self.cluster.name, "")
        cluster_context = {**kwargs, "cluster": self.cluster, "sees_cluster": sees_cluster}
        return super().get_context_data(**cluster_context, may_pause=self.may(PAUSING))

    @property
    def is_paused(self) -> bool:
        """Whether a person has paused the cluster's sync."""
        return hasattr(self.cluster, "connection") and self.cluster.connection.is_paused


def find_cluster(name: str) -> Cluster:
    """The cluster of this name with its connection and health, or 404."""
    cluster: Cluster = get_object_or_404(
        Cluster.objects.select_related("connection", "sync_state", "webhook_health"), name=name
    )
    return cluster


def whole_number(sent_text: str) -> int:
    """A number that a browser sent; 0 for none, or for one that no column of 64 bits holds."""
    return int(sent_text) if sent_text.isdecimal() and len(sent_text) < _COLUMN_DIGITS else 0
