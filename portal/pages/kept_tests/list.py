"""KeptTestListView: the kept tests of the namespaces that one sees; KeptTestsAsYaml, as a file."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse

from policies import roles
from policies.manifests.render import render_manifests
from policies.models import KeptTest
from portal.pages.lists import ListColumns, any_contains, listed, search_of
from portal.pages.shell.chosen import chosen_cluster
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

MOST_EXPORTED: Final = 5_000
"""So many tests are in one file: the command exports more."""
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
        tests = _asked_tests(self.request)
        return super().get_context_data(
            **kwargs,
            **listed(tests, self.request, _COLUMNS),
            asked_query=self.request.GET.urlencode(),
        )


class KeptTestsAsYaml(PortalPage):
    """All tests that the list asks for, as one YAML file."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Export them; a comment says where the tests of another cluster begin."""
        tests = _asked_tests(request)
        if search := search_of(request.GET):
            tests = tests.filter(any_contains(search, *_COLUMNS.searched))
        ordered = tests.order_by("namespace__cluster__name", "namespace__name", "name")
        texts = [
            f"# Cluster {name}\n{render_manifests(each.to_manifest() for each in of_cluster)}"
            for name, of_cluster in groupby(ordered[:MOST_EXPORTED], lambda each: each.owner.name)
        ]
        answer = HttpResponse("---\n".join(texts), content_type="application/yaml; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="tests.yaml"'
        return answer


def _asked_tests(request: HttpRequest) -> QuerySet[KeptTest]:
    """Those of the chosen cluster, or of all."""
    tests = visible_tests(request.user)
    chosen = chosen_cluster(request)
    return tests.filter(namespace__cluster__name=chosen) if chosen else tests


def visible_tests(user: Any) -> QuerySet[KeptTest]:
    """The tests of namespaces that the user sees."""
    tests = KeptTest.objects.select_related("namespace__cluster")
    return roles.visible(
        tests, user, cluster="namespace__cluster__name", namespace="namespace__name"
    )
