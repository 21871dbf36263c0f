"""ClassListView: all namespace classes with the numbers of their namespaces and exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q

from policies import roles
from policies.models import NamespaceClass
from portal.pages.lists import ListColumns, listed
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.db.models import QuerySet

WRITE_CLASSES: Final = "policies.change_namespaceclass"
_COLUMNS: Final = ListColumns(
    headings=(
        ("name", "Class", ""),
        ("", "Description", "only-wide prose"),
        ("version", "Version", "figure only-wide"),
        ("", "Policies", "figure only-wide"),
        ("namespaces", "Namespaces", "figure"),
        ("exceptions", "Exceptions", "figure"),
        ("changed", "Changed", "only-wide"),
    ),
    orders={
        "name": ("name",),
        "version": ("version", "name"),
        "namespaces": ("member_number", "name"),
        "exceptions": ("exception_number", "name"),
        "changed": ("updated", "name"),
    },
    usual="name",
    searched=("name",),
)


class FleetPage(PortalPage):
    """A page about all clusters, for those who see all of them."""

    permission = WRITE_CLASSES

    def find(self, names: dict[str, Any]) -> None:
        """Refuse everybody else before anything is looked up."""
        super().find(names)
        if not roles.sees_all(self.request.user):
            raise PermissionDenied


class ClassListView(FleetPage):
    """All classes, by name."""

    template_name = "classes/classes.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of classes with their numbers."""
        asked = listed(counted_classes(), self.request, _COLUMNS)
        return super().get_context_data(**kwargs, **asked)


def counted_classes() -> QuerySet[NamespaceClass]:
    """The classes with the numbers of members, of policies with exceptions, of problems."""
    members = Count("members", filter=Q(members__has_left=False), distinct=True)
    waiting = Count("members", filter=Q(members__has_left=True), distinct=True)
    hindered = Count("members", filter=~Q(members__problems=[]), distinct=True)
    changed = Count("made", filter=Q(made__exception_count__gt=0), distinct=True)
    return NamespaceClass.objects.annotate(
        member_number=members,
        waiting_number=waiting,
        hindered_number=hindered,
        exception_number=changed,
    )
