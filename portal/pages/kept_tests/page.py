"""KeptTestPageView: one kept test as YAML, with its result today; deleted by a button."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect

from policies import roles, services, simulation, snapshot
from policies.manifests.render import render_manifests
from policies.models import KeptTest
from portal.pages.kept_tests.list import visible_tests
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class KeptTestPageView(PortalPage):
    """A test, judged anew by the policies in force."""

    template_name = "kept_tests/test.html"
    permission = roles.writing(KeptTest.kind, "delete")
    test: KeptTest

    def find(self, names: dict[str, Any]) -> None:
        """Find it; 404 for those who do not see its namespace."""
        found = visible_tests(self.request.user).filter(pk=names["pk"]).first()
        if found is None:
            raise Http404
        self.test = found

    def scope(self) -> roles.RoleScope:
        """Its namespace."""
        return roles.RoleScope(self.test.owner.name, self.test.namespace_name)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Its text, and what it finds today."""
        test = self.test
        policies = snapshot.load(test.owner.name, test.namespace_name)
        [judged] = simulation.judged([test], policies)
        yaml = render_manifests([test.to_manifest()])
        return super().get_context_data(**kwargs, test=test, judged=judged, yaml=yaml)

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Delete it."""
        if request.POST.get("do") != "delete":
            raise Http404
        services.delete_kept_test(test=self.test, user=self.username)
        messages.success(request, f"Deleted {self.test.name}. Its revisions stay.")
        return redirect("kept-tests")
