"""KeepView: a decision kept as a test of its namespace, with the answer that is expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404
from django.shortcuts import redirect

from admission.replay.keep import NotKeepableError, kept_from
from engine.errors import DecodeError
from engine.kept_tests import ALLOW, DENY, answer_of, decode_kept_test, judge_test
from policies import roles, services, simulation, snapshot
from policies.manifests.render import render_documents
from policies.models import KeptTest, Namespace
from policies.validators import errors_by_path
from portal.pages.decisions.why import DecisionMixin
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from admission.models import AuditEvent

KEEPING: Final = roles.writing(KeptTest.kind, "add")
"""The permission to keep a test in a namespace."""
UNKNOWN: Final = "The portal does not know this namespace any more, so it keeps no test of it."


class KeepView(DecisionMixin, PortalPage):
    """The form of a new test, filled in from a decision."""

    template_name = "decisions/keep.html"
    event: AuditEvent

    def find(self, names: dict[str, Any]) -> None:
        """Find the decision; 403 for those who may keep no test of its namespace."""
        super().find(names)
        self.event = self.decision()
        event = self.event
        if not roles.may(
            self.request.user, KEEPING, cluster=event.cluster, namespace=event.namespace
        ):
            raise PermissionDenied

    def may_post(self) -> bool:
        """Whoever may open it."""
        return True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What is kept, or why it cannot be."""
        context: dict[str, Any] = {"event": self.event, "wrong": {}}
        try:
            manifest = kept_from(self.event)
        except NotKeepableError as error:
            return super().get_context_data(**{**context, "refusal": str(error), **kwargs})
        expected = manifest["spec"]["expect"]
        context |= {
            "name": "",
            "verdict": expected["verdict"],
            "reasons": ", ".join(expected.get("reasons", ())),
            "object_yaml": render_documents([manifest["spec"].get("object") or {}]),
            "changes": self._changes_today(manifest),
            "is_patch_expected": True,
        }
        return super().get_context_data(**{**context, **kwargs})

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Keep it, and say whether it passes today."""
        sent = {
            name: request.POST.get(name, "").replace("\0", "").strip()
            for name in ("name", "verdict", "reasons")
        }
        is_patch_expected = request.POST.get("patch") == "on"
        try:
            test = self._kept(sent, is_patch_expected=is_patch_expected)
        except (NotKeepableError, ValidationError) as error:
            context = self.get_context_data(
                **sent, form_error=_said(error), is_patch_expected=is_patch_expected
            )
            return self.render_to_response(context, status=422)
        messages.success(request, f"Kept as {test.name}. {self._today(test)}")
        return redirect("decision-detail", self.event.pk)

    def _changes_today(self, manifest: dict[str, Any]) -> Sequence[Mapping[str, Any]] | None:
        """The changes that policies make to the object today; None where they refuse it."""
        try:
            test = decode_kept_test(manifest)
        except DecodeError:
            return None
        policies = snapshot.load(self.event.cluster, self.event.namespace)
        decision = judge_test(test, policies).decision
        return answer_of(decision).patch if decision else None

    def _kept(self, sent: dict[str, str], *, is_patch_expected: bool) -> KeptTest:
        if sent["verdict"] not in (ALLOW, DENY):
            raise Http404
        event = self.event
        manifest = kept_from(event, name=sent["name"])
        reasons = sent["reasons"].replace(",", " ").split() if sent["verdict"] == DENY else []
        expected: dict[str, Any] = {"verdict": sent["verdict"]}
        expected |= {"reasons": reasons} if reasons else {}
        if is_patch_expected and sent["verdict"] == ALLOW:
            changes = self._changes_today(manifest)
            expected |= {"patch": list(changes)} if changes is not None else {}
        manifest["spec"]["expect"] = expected
        place = Namespace.objects.filter(cluster__name=event.cluster, name=event.namespace).first()
        if place is None:
            raise NotKeepableError(UNKNOWN)
        test: KeptTest = services.take_over(KeptTest(namespace=place), manifest)
        services.save_kept_test(
            test=test, user=self.username, reason=f"kept from decision {event.pk}"
        )
        return test

    def _today(self, test: KeptTest) -> str:
        policies = snapshot.load(self.event.cluster, self.event.namespace)
        [found] = simulation.judged([test], policies)
        if found.passes:
            return "It passes today."
        return f"It is red today: {'; '.join(each.message for each in found.differences)}"


def _said(error: NotKeepableError | ValidationError) -> str:
    """What is wrong, each field with its first error."""
    if isinstance(error, NotKeepableError):
        return str(error)
    found = errors_by_path(error).items()
    return "; ".join(
        f"{path}: {errors[0]['message']}" if path else errors[0]["message"]
        for path, errors in found
    )
