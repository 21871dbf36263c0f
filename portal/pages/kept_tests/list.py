"""KeptTestListView: the kept tests of the namespaces that one sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from policies import roles
from policies.models import KeptTest
from portal.pages.lists import ListColumns, listed
from portal.pages.shell.chosen import chosen_cluster
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.db.models import QuerySet

_COLUMNS: Final = ListColumns(
    headings=(
        ("name", "Test", "prose"),
        ("namespace", "Namespace", ""),
        ("", "Expected", "only-wide"),
        ("author", "Kept by", "only-wide"),
    ),
    orders={
        "name": ("name", "pk"),
        "namespace": ("namespace__cluster__name", "namespace__name", "name"),
        "author": ("author", "pk"),
    },
    usual="name",
    searched=("name", "namespace__name", "author"),
)


class KeptTestListView(PortalPage):
    """Tests, found by name, namespace or author."""

    template_name = "kept_tests/tests.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of them."""
        tests = visible_tests(self.request.user)
        chosen = chosen_cluster(self.request)
        if chosen:
            tests = tests.filter(namespace__cluster__name=chosen)
        return super().get_context_data(**kwargs, **listed(tests, self.request, _COLUMNS))


def visible_tests(user: Any) -> QuerySet[KeptTest]:
    """The tests of namespaces that the user sees."""
    tests = KeptTest.objects.select_related("namespace__cluster")
    return roles.visible(
        tests, user, cluster="namespace__cluster__name", namespace="namespace__name"
    )
