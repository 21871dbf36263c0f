"""ClassPageView: one class, its policies, namespaces, exceptions to give back, its versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.shortcuts import get_object_or_404, redirect

from policies import services
from policies.manifests.render import render_manifests
from policies.models import ClassMember, ClassPolicy, NamespaceClass, NamespaceClassVersion
from policies.plurals import counted
from portal.pages.classes.list import FleetPage, counted_classes
from portal.pages.lists import ListColumns, listed
from portal.pages.views import whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from policies.managed_fields import ManagedField

EXCEPTIONS_SHOWN: Final = 100
VERSIONS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class ExceptionLine:
    """A policy that somebody changed in one namespace, and the fields that stay so."""

    policy: ClassPolicy
    fields: Sequence[ManagedField]

    @property
    def plural(self) -> str:
        """The kind's segment in addresses."""
        return _PLURALS[self.policy.kind]


_PLURALS: Final = {
    "LimitRange": "limitranges",
    "MetadataPolicy": "metadatapolicies",
    "ResourceQuota": "resourcequotas",
}


_MEMBER_COLUMNS: Final = ListColumns(
    headings=(
        ("name", "Namespace", ""),
        ("cluster", "Cluster", ""),
        ("version", "Version", "figure only-wide"),
        ("", "State", ""),
    ),
    orders={
        "name": ("namespace__name", "namespace__cluster__name"),
        "cluster": ("namespace__cluster__name", "namespace__name"),
        "version": ("version", "namespace__cluster__name", "namespace__name"),
    },
    usual="cluster",
    searched=("namespace__name",),
)


class ClassPageView(FleetPage):
    """One class; its forms give exceptions back, and let held deletions go on."""

    template_name = "classes/class.html"
    namespace_class: NamespaceClass

    def find(self, names: dict[str, Any]) -> None:
        """Find the class, or 404."""
        super().find(names)
        self.namespace_class = get_object_or_404(counted_classes(), name=names["name"])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The class, a page of its namespaces, the first exceptions, the newest versions."""
        stored = self.namespace_class
        members = ClassMember.objects.filter(namespace_class=stored)
        members = members.select_related("namespace__cluster")
        changed = (
            ClassPolicy.objects.filter(namespace_class=stored, exception_count__gt=0)
            .select_related("namespace__cluster")
            .order_by("namespace__cluster__name", "namespace__name", "kind", "name")
        )
        return super().get_context_data(
            **kwargs,
            stored=stored,
            value=stored.value,
            yaml=render_manifests([stored.manifest]),
            **listed(members, self.request, _MEMBER_COLUMNS),
            exceptions=[
                ExceptionLine(row, services.exceptions_of(row))
                for row in changed[:EXCEPTIONS_SHOWN]
            ],
            held=services.held_deletions(stored),
            versions=NamespaceClassVersion.objects.filter(name=stored.name)[:VERSIONS_SHOWN],
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Give an exception back, or confirm the held deletions."""
        try:
            if "leave" in request.POST:
                count = whole_number(request.POST["leave"])
                given = services.confirm_leaving(
                    stored=self.namespace_class, user=self.username, count=count
                )
                messages.success(request, f"Deleted: {counted(given.removed, 'policies')}.")
            else:
                pk = whole_number(request.POST.get("give_back", ""))
                row = get_object_or_404(ClassPolicy, pk=pk, namespace_class=self.namespace_class)
                services.give_back(policy=row, user=self.username)
                messages.success(request, f"{row.kind} {row.name} follows the class again.")
        except ValidationError as error:
            messages.error(request, error.messages[0])
        return redirect("class-page", self.namespace_class.name)
