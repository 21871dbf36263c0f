"""KeptTestPageView: one kept test as YAML with its result today; edited, run, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse

from policies import roles, services
from policies.manifests.render import render_manifests
from policies.models import KeptTest
from portal.pages.kept_tests.list import visible_tests
from portal.pages.kept_tests.text_page import CONFLICT, STALE, TestTextPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from policies.models import PolicyRevision

_DELETING = roles.writing(KeptTest.kind, "delete")


class KeptTestPageView(TestTextPage):
    """A test, judged anew by the policies in force."""

    def find(self, names: dict[str, Any]) -> None:
        """Find it; 404 for those who do not see its namespace."""
        found = visible_tests(self.request.user).filter(pk=names["pk"]).first()
        if found is None:
            raise Http404
        self.test = found

    def may_post(self) -> bool:
        """A deletion has a permission of its own."""
        if self.request.POST.get("do") == "delete":
            return self.may(_DELETING)
        return super().may_post()

    @property
    def sent_text(self) -> str:
        """The text of the form; those who only read have none, and run the stored test."""
        return super().sent_text if "text" in self.request.POST else self.stored_text

    @property
    def stored_text(self) -> str:
        """The stored test as YAML."""
        return render_manifests([self.test.to_manifest()])

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:  # noqa: ARG002 - as Django calls it
        """Its text, and what it finds today."""
        return self.show(self.stored_text, judged=self.judge(self.test))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Whether it may be deleted."""
        return super().get_context_data(**kwargs, may_delete=self.may(_DELETING))

    def post(self, request: HttpRequest, **names: Any) -> HttpResponse:
        """Delete it, or do what the form of its text offers."""
        if request.POST.get("do") == "delete":
            return self._delete()
        return super().post(request, **names)

    def _delete(self) -> HttpResponse:
        """Delete it; the message has a button that takes it back."""
        try:
            saved = services.delete_kept_test(
                test=self.test, user=self.username, reason=self.reason, expected_revision=self.seen
            )
        except services.StaleRevisionError:
            return self.show(self.stored_text, status=CONFLICT, form_error=STALE)
        messages.success(
            self.request,
            f"Deleted {self.test.name}. Its revisions stay.",
            extra_tags=_undo_address(saved.revision),
        )
        return redirect("kept-tests")


def _undo_address(revision: PolicyRevision | None) -> str:
    """The address that takes a deletion back; empty where nothing was deleted."""
    if revision is None:
        return ""
    of = f"{revision.cluster}:{revision.cluster_revision}"
    return f"{reverse('policy-undo')}?{urlencode({'of': of, 'to': 'tests'})}"
