"""TestTextPage, a test as YAML: judged as it stands there, saved with a reason."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from csp.constants import NONCE
from csp.decorators import csp_update
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import redirect
from django.utils.decorators import method_decorator

from engine.errors import DecodeError
from engine.kept_tests import answer_of, encode_kept_test
from policies import roles, services, simulation, snapshot
from policies.manifests.documents import ManifestError
from policies.manifests.render import render_manifests
from policies.models import KeptTest
from policies.plurals import counted
from portal.pages.kept_tests.text import problems_of, read_test
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from engine.kept_tests import ExpectedAnswer, JudgedTest
    from engine.policy import PolicySet

LONGEST_REASON: Final = 1000
NO_REASON: Final = "Give a reason: it stays on record."
STALE: Final = "Somebody has written this test since you opened it. Open it again to see how it is."
RUN, ACCEPT, SAVE = "run", "accept", "save"
INVALID: Final = 422
CONFLICT: Final = 409


@method_decorator(csp_update({"style-src": [NONCE]}), name="dispatch")
class TestTextPage(PortalPage):
    """The text of one test, stored or new, and what the policies in force answer."""

    __test__ = False

    template_name = "kept_tests/test.html"
    action: ClassVar[str] = "change"
    """What saving does to the row, as permissions name it."""
    test: KeptTest

    def scope(self) -> roles.RoleScope:
        """Its namespace."""
        return roles.RoleScope(self.test.owner.name, self.test.namespace_name)

    @cached_property
    def policies(self) -> PolicySet:
        """The policies in force in its namespace."""
        return snapshot.load(self.test.owner.name, self.test.namespace_name)

    @property
    def sent_text(self) -> str:
        """The text of the form."""
        return self.request.POST.get("text", "").replace("\r\n", "\n").replace("\0", "")

    @property
    def reason(self) -> str:
        """The reason that was given."""
        return self.request.POST.get("reason", "").replace("\0", "").strip()[:LONGEST_REASON]

    @property
    def seen(self) -> int:
        """The revision that the form was opened with; of a new test none, whatever another sent."""
        if self.test.pk is None:
            return 0
        if "seen" not in self.request.POST:
            return self.test.revision
        return whole_number(self.request.POST["seen"])

    def may_post(self) -> bool:
        """Whoever sees the test may run it: that stores nothing."""
        button = self.request.POST.get("do", "")
        return button in {RUN, ACCEPT} or self.may(roles.writing(KeptTest.kind, self.action))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The test, and whether its form may be sent."""
        return super().get_context_data(
            **kwargs,
            test=self.test,
            reason=self.reason,
            seen=self.seen,
            may_save=self.may(roles.writing(KeptTest.kind, self.action)),
            is_new=self.test.pk is None,
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Do the button's action with the text of the form."""
        button = request.POST.get("do", "")
        if button not in {RUN, ACCEPT, SAVE}:
            raise Http404
        try:
            read = read_test(self.sent_text, self.test)
            if button == ACCEPT:
                _accept(read, self.policies)
                text = render_manifests([read.to_manifest()])
                return self.show(text, judged=self.judge(read))
        except ManifestError as error:
            return self.show(self.sent_text, status=INVALID, problems=error.problems)
        except DecodeError as error:
            return self.show(self.sent_text, status=INVALID, form_error=f"The object {error}.")
        if button == RUN:
            return self.show(self.sent_text, judged=self.judge(read))
        return self.save(read)

    def save(self, read: KeptTest) -> HttpResponse:
        """Save what was read, for a reason."""
        text = self.sent_text
        if not self.reason:
            return self.show(text, status=INVALID, form_error=NO_REASON)
        try:
            saved = services.save_kept_test(
                test=read, user=self.username, reason=self.reason, expected_revision=self.seen
            )
        except services.StaleRevisionError:
            return self.show(text, status=CONFLICT, form_error=STALE)
        except ValidationError as error:
            return self.show(text, status=INVALID, problems=problems_of(error))
        if saved.changed:
            messages.success(self.request, f"Saved {read.name}.")
        else:
            messages.info(self.request, "Nothing was changed.")
        return redirect("kept-test", read.pk)

    def judge(self, test: KeptTest) -> JudgedTest:
        """What the policies in force answer."""
        [judged] = simulation.judged([test], self.policies)
        return judged

    def show(
        self, text: str, *, status: int = 200, judged: JudgedTest | None = None, **more: Any
    ) -> HttpResponse:
        """The page with a text, and its result if it was judged."""
        context = self.get_context_data(yaml=text, **answers_of(judged), **more)
        return self.render_to_response(context, status=status)


def answers_of(judged: JudgedTest | None) -> dict[str, Any]:
    """A result for the template: the expected answer and the found one in words."""
    if judged is None:
        return {}
    found = answer_of(judged.decision) if judged.decision else None
    return {
        "judged": judged,
        "expected": answer_words(judged.test.expected),
        "found": answer_words(found) if found else "",
    }


def answer_words(answer: ExpectedAnswer) -> str:
    """An answer in words: ``denied for MaxConstraint``, ``allowed, with 2 changes``."""
    if not answer.allowed:
        return f"denied for {', '.join(answer.reasons)}" if answer.reasons else "denied"
    if answer.patch is None:
        return "allowed, with any change"
    return f"allowed, with {counted(len(answer.patch), 'changes')}"


def _accept(test: KeptTest, policies: PolicySet) -> None:
    """Let an unsaved test expect the answer of today."""
    test.spec = encode_kept_test(simulation.with_answer(test.value, policies))["spec"]
