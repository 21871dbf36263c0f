"""NewKeptTestView: a new test of a namespace, filled in from an object that was tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404

from policies import roles
from policies.manifests.documents import ManifestError
from policies.models import KeptTest, Namespace
from portal.pages.kept_tests.text import read_test
from portal.pages.kept_tests.text_page import TestTextPage
from portal.pages.views import find_cluster

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_BLANK: Final = """\
apiVersion: policy.gatehouse.dev/v1alpha1
kind: PolicyTest
metadata:
  name: large-pods-are-refused
spec:
  expect:
    verdict: deny
  object:
    apiVersion: v1
    kind: Pod
    metadata:
      name: web
    spec:
      containers:
      - name: web
        image: nginx
        resources:
          limits:
            cpu: "64"
"""


class NewKeptTestView(TestTextPage):
    """The text of a test that is not stored yet."""

    action = "add"

    def find(self, names: dict[str, Any]) -> None:
        """Find the namespace; 404 for those who do not see it, 403 for those who only read it."""
        if not roles.sees(self.request.user, names["cluster"], names["namespace"]):
            raise Http404
        cluster = find_cluster(names["cluster"])
        home = get_object_or_404(Namespace, cluster=cluster, name=names["namespace"])
        home.cluster = cluster  # saves the query that the foreign key would make
        self.test = KeptTest(namespace=home)
        if not self.may(roles.writing(KeptTest.kind, self.action)):
            raise PermissionDenied

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:  # noqa: ARG002 - as Django calls it
        """Begin with a test that shows the fields."""
        return self.show(_BLANK)

    def post(self, request: HttpRequest, **names: Any) -> HttpResponse:
        """Fill the form in with what another page has made, or do its button's action."""
        if request.POST.get("do") != "fill":
            return super().post(request, **names)
        text = request.POST.get("test", "").replace("\r\n", "\n").replace("\0", "")
        try:
            return self.show(text, judged=self.judge(read_test(text, self.test)))
        except ManifestError as error:
            return self.show(text, problems=error.problems)
