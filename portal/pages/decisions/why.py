"""The page of one decision: why it came out so, then and now."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import Http404

from admission.explain import object_diff, origins, redecide
from admission.explain.suggest import Suggestion, suggest
from admission.models import AuditEvent
from admission.record.narrative import sentence
from policies import roles
from policies.models import PriorityClass
from portal.pages.decisions import reproduce
from portal.pages.permissions import PortalPage

if TYPE_CHECKING:
    from engine.decision import Decision
    from engine.request import AdmissionRequest
    from policies.models import PolicyRevision


LONGEST: Final = 60_000
"""Characters of one text on the page."""


class WhyView(PortalPage):
    """Why it came out so, what would have passed, whether it would today, and who made it so."""

    template_name = "decisions/why.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The decision, and what is worked out of it; one question more for each exceeded quota."""
        event = self._event()
        revisions = redecide.revisions_of(event)
        return super().get_context_data(
            **kwargs,
            event=event,
            is_cut=event.is_cut,
            sentence=sentence(event),
            patch=[_operation(each) for each in event.patch],
            patched=object_diff.patched(event),
            updated=object_diff.updated(event),
            judged=_pretty(event.request.get("object")),
            judged_before=_pretty(event.request.get("oldObject")),
            milliseconds=f"{event.duration_us / 1000:.1f}",
            deciding=origins.deciding(event, revisions),
            since=origins.since(event, whole=roles.sees(self.request.user, event.cluster, "")),
            **self._asked_again(event, revisions),
        )

    def _event(self) -> AuditEvent:
        found = AuditEvent.objects.with_id(self.kwargs["pk"]).first()
        if found is None or not roles.sees(self.request.user, found.cluster, found.namespace):
            raise Http404
        return found

    def _asked_again(self, event: AuditEvent, revisions: list[PolicyRevision]) -> dict[str, Any]:
        request = redecide.request_of(event)
        if request is None:
            return {}
        rules = redecide.rules_then(event, revisions)
        if rules is not None and not redecide.agrees(event, request, rules):
            rules = None
        now = redecide.rules_now(event)
        decision = redecide.judge(request, now)
        ways = _ways(event, request, rules.policies if rules else now)
        return {
            "today": decision,
            "today_differs": decision.allowed != event.allowed,
            "is_of_then": rules is not None,
            "suggestions": [
                _way(request, each, redecide.judge(each.request, now)) for each in ways
            ],
            "is_searched": not event.allowed and event.operation in ("CREATE", "UPDATE"),
            "copies": [
                each
                for each in reproduce.copies(event, request, rules, self._address())
                if len(each.text) <= LONGEST
            ],
        }

    def _address(self) -> str:
        """The portal's address, as clusters call it."""
        return settings.GATEHOUSE_EXTERNAL_URL or self.request.build_absolute_uri("/")


def _ways(event: AuditEvent, request: AdmissionRequest, policies: Any) -> list[Suggestion]:
    if event.allowed:
        return []
    names = PriorityClass.objects.filter(cluster__name=event.cluster).order_by("-value", "name")
    classes = names.values_list("name", flat=True)[:20]
    return suggest(request, policies, list(classes))


def _way(request: AdmissionRequest, found: Suggestion, today: Decision) -> dict[str, Any]:
    """One suggestion for the page: its changes, the lines they make, a manifest to take along."""
    before, after = request.object or {}, found.request.object or {}
    return {
        "changes": found.changes,
        "lines": object_diff.lines_between(before, after),
        "today": today,
        "text": reproduce.as_kubectl(dataclasses.replace(request, object=after)),
    }


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    value = json.dumps(operation.get("value"), ensure_ascii=False, sort_keys=True)
    return {**operation, "value": "" if operation.get("op") == "remove" else value}


def _pretty(value: Any) -> str:
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… cut here; the API gives all"
