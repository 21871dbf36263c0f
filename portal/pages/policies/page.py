"""PolicyPage, the base view about one policy: PolicyPlace, stored manifest, permissions, routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse

from policies import roles, services
from policies.drafts.draft import PolicyPlace
from policies.drafts.kinds import BY_PLURAL, LIMITED_RESOURCES
from policies.managed_fields import GIT, FieldManager, managers_from_json
from policies.models import LimitedResource, Namespace, PolicyRevision
from portal.pages.views import PortalPage, find_cluster, names_of, route_of
from sync.enforcement.survey import namespaces_left_out

if TYPE_CHECKING:
    from policies.models import Cluster, ObjectManagers


class ManagersOfObject:
    """The managers of an object's fields, as a page shows them."""

    def __init__(self, row: ObjectManagers) -> None:
        self.set = row.set
        present = managers_from_json(row.fields)
        self.fields = {field: each for field, each in present.items() if not each.removed}
        mine = [each for each in self.fields.values() if each.manager == f"{GIT}{row.set}"]
        newest = max(mine, key=lambda each: each.time, default=None)
        self.set_manager = newest or FieldManager(manager=f"{GIT}{row.set}")


class PolicyPage(PortalPage):
    """A page about one policy, stored or new. Never cached."""

    cluster: Cluster
    place: PolicyPlace
    stored: Any
    manifest: dict[str, Any] | None

    def find(self, names: dict[str, Any]) -> None:
        """Find the policy's place; the names come from the address."""
        editable_kind, namespace = BY_PLURAL.get(names.get("plural", "")), names.get("namespace")
        if editable_kind is None or editable_kind.is_namespaced is (namespace is None):
            raise Http404
        if not roles.sees(self.request.user, names["cluster"], namespace):
            raise Http404
        self.cluster = find_cluster(names["cluster"])
        home = None
        if editable_kind.is_namespaced:
            home = get_object_or_404(Namespace, cluster=self.cluster, name=namespace)
            home.cluster = self.cluster  # saves the query that the foreign key would make
        self.place = PolicyPlace(
            kind=editable_kind, cluster=self.cluster, namespace=home, name=names.get("name", "")
        )
        self.manifest = self.read_stored()

    def read_stored(self) -> dict[str, Any] | None:
        """The stored manifest; None where there is none."""
        if self.place.kind is LIMITED_RESOURCES:
            limited_rows = LimitedResource.objects.filter(cluster=self.cluster)
            self.stored = None
            blank_one = self.place.kind.blank()
            return {**blank_one, "limitedResources": [row.to_manifest() for row in limited_rows]}
        self.stored = self.place.find()
        stored_manifest: dict[str, Any] | None = self.stored.to_manifest() if self.stored else None
        return stored_manifest

    @property
    def revision(self) -> int:
        """The number of the last write; 0 for none."""
        if self.place.kind is not LIMITED_RESOURCES:
            return self.stored.revision if self.stored else 0
        return self.history().values_list("number", flat=True).first() or 0

    def history(self) -> Any:
        """All its revisions, newest first."""
        kind = self.place.kind
        name = "limitedResources" if kind is LIMITED_RESOURCES else self.place.name
        revisions = PolicyRevision.objects.of(
            cluster=self.cluster.name, kind=kind.name, name=name, namespace=self.namespace_name
        )
        return revisions.order_by("-number")

    def managers(self) -> ManagersOfObject | None:
        """The managers of its fields; None where nobody is known."""
        kind = self.place.kind
        name = "limitedResources" if kind is LIMITED_RESOURCES else self.place.name
        key = (kind.name, self.namespace_name, name)
        row = services.managers_of(self.cluster, [key]).get(key)
        return ManagersOfObject(row) if row else None

    @property
    def namespace_name(self) -> str:
        """Its namespace; empty for policies of a cluster."""
        return self.place.namespace_name

    def may(self, action: str) -> bool:
        """Whether the signed-in person may ``add``, ``change`` or ``delete`` it."""
        # The one list of limited resources always exists: it is never added or deleted.
        if self.place.kind.is_configuration:
            action = "change"
        return roles.may(
            self.request.user,
            roles.writing(self.place.kind.name, action),
            cluster=self.cluster.name,
            namespace=self.namespace_name,
        )

    def may_post(self) -> bool:
        """Whether the page's form may be sent."""
        return self.may("change")

    def is_left_out(self) -> bool:
        """Whether the webhooks of its cluster leave its namespace out."""
        return self.namespace_name in namespaces_left_out(self.cluster)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The policy's place, addresses and permissions."""
        kind = self.place.kind
        place_context = {
            "cluster": self.cluster,
            "sees_cluster": roles.sees(self.request.user, self.cluster.name, ""),
            "kind": kind,
            "namespace": self.place.namespace,
            "name": self.place.name,
            "revision": self.revision,
            "may_write": self.may("change" if self.place.name or kind.is_configuration else "add"),
            "may_delete": bool(self.stored) and self.may("delete"),
            "address": address_of(self.place),
            "revisions_address": revisions_address(self.place),
            "managers": self.managers(),
            "is_left_out": self.is_left_out,  # only a template that asks costs a query
        }
        view_context = {name: value for name, value in kwargs.items() if name not in self.kwargs}
        return super().get_context_data(**{**place_context, **view_context})


def address_of(place: PolicyPlace) -> str:
    """The page of a policy; empty for one without a name."""
    return _policy_address(place, "")


def revisions_address(place: PolicyPlace) -> str:
    """The page of a policy's revisions; empty for one without a name."""
    return _policy_address(place, "-revisions")


def _policy_address(place: PolicyPlace, route_suffix: str) -> str:
    policy_kind = place.kind
    if not place.name and not policy_kind.is_configuration:
        return ""
    route_names = names_of(
        policy_kind, cluster=place.cluster.name, namespace=place.namespace_name, name=place.name
    )
    return reverse(f"{route_of(policy_kind)}{route_suffix}", kwargs=route_names)
