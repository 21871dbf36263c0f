"""WhyView, one decision: verdict, ways out, trace; the object, copies and the record in tabs."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db.models import Q
from django.http import Http404
from django.utils import timezone

from admission.explain import object_diff
from admission.explain.explanation import explain
from admission.models import AuditEvent
from admission.record.narrative import sentence
from admission.record.search.calls import other_call_of
from admission.record.search.facets import with_fields
from admission.record.search.search import Search
from policies import roles
from policies.models import RoleBinding
from portal.pages.decisions.as_of import as_of
from portal.pages.decisions.explorer import visible_decisions
from portal.pages.decisions.reasons.amounts import charged_amounts
from portal.pages.decisions.reasons.copies import as_kubectl, copies
from portal.pages.decisions.reasons.faults import faults_of, headline
from portal.pages.decisions.reasons.links import PolicyLinks
from portal.pages.decisions.reasons.trace import SetBy, changed_words, trace_rows
from portal.pages.decisions.rows import milliseconds, recorded_owner, shown_name
from portal.pages.decisions.words import patch_words, short_user
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from admission.explain.explanation import Explanation, WayOut
    from admission.explain.origins import Origin
    from admission.explain.raised_limits import QuotaRaise
    from engine.request import AdmissionRequest


LONGEST: Final = 60_000
"""Characters of one text on the page."""
TABS: Final = {"trace": "Trace", "object": "Object", "reproduce": "Reproduce", "raw": "Raw"}
EDITORS_SHOWN: Final = 3
WAYS_SHOWN: Final = 3
_RAISING: Final = roles.writing("ResourceQuota")
_KEEPING: Final = roles.writing("PolicyTest", "add")
_EDITING: Final = (RoleBinding.Role.EDITOR, RoleBinding.Role.ADMIN)


class DecisionMixin:
    """What the page of a decision and its panel have in common."""

    request: Any
    kwargs: dict[str, Any]

    def decision(self) -> AuditEvent:
        """The decision of the address, if the person may see it."""
        event: AuditEvent | None = AuditEvent.objects.with_id(self.kwargs["pk"]).first()
        if event is None or not roles.sees(self.request.user, event.cluster, event.namespace):
            raise Http404
        return event

    def reasons(self, event: AuditEvent) -> dict[str, Any]:
        """The decision explained; one query more for each exceeded quota."""
        whole = roles.sees(self.request.user, event.cluster, "")
        explanation = explain(event, whole=whole)
        links = PolicyLinks.of(event, explanation.todays)
        found = event.observed if event.allowed else event.violations
        deciding_policy = (found[0].get("policy") or {}) if found else {}
        request, today = explanation.request, explanation.today
        other = other_call_of(event)
        return {
            "event": event,
            "explanation": explanation,
            "links": links,
            "name": shown_name(event, recorded_owner(event)),
            "headline": headline(event),
            "headline_link": links.policy(deciding_policy) if deciding_policy else "",
            "all_faults": faults_of(found),
            "not_listed": event.more_violations + event.more_observed,
            "changes": patch_words(event.patch),
            "account": short_user(event.user),
            "milliseconds": milliseconds(event),
            "other": other,
            "other_milliseconds": milliseconds(other) if other else "",
            "today": today,
            "today_differs": today is not None and today.allowed != event.allowed,
            "is_of_then": explanation.rules is not None,
            "suggestions": [_suggested(request, way) for way in explanation.ways_out]
            if request
            else [],
            "is_searched": bool(request)
            and not event.allowed
            and event.operation in ("CREATE", "UPDATE"),
            "raises": [_raise(each, links) for each in explanation.raises],
            "may_raise": roles.may(
                self.request.user, _RAISING, cluster=event.cluster, namespace=event.namespace
            ),
            "may_keep": roles.may(
                self.request.user, _KEEPING, cluster=event.cluster, namespace=event.namespace
            ),
            "deciding": [_set_by(each, explanation, links) for each in explanation.deciding],
        }


class WhyView(DecisionMixin, PortalPage):
    """The reasons of a decision, ways out, today's result; tabs of one address each."""

    template_name = "decisions/why.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The decision, its explanation and what the open tab shows."""
        event = self.decision()
        reasons = self.reasons(event)
        asked = self.request.GET.get("tab", "")
        tab = asked if asked in TABS else "trace"
        links: PolicyLinks = reasons["links"]
        found: Explanation = reasons["explanation"]
        return super().get_context_data(
            **kwargs,
            **reasons,
            tab=tab,
            tabs=TABS.items(),
            is_cut=event.is_cut,
            more_faults=len(reasons["all_faults"][1:]) + reasons["not_listed"],
            ways=reasons["suggestions"][: max(1, WAYS_SHOWN - len(reasons["raises"]))],
            checked=timezone.now(),
            charges=[
                (step["policy"]["name"], charged_amounts(step.get("numbers") or {}))
                for step in event.trace
                if step.get("outcome") == "charged" and step.get("policy")
            ],
            home=links.home(),
            trace=trace_rows(event, found, links),
            since=[_set_by(each, found, links) for each in found.since],
            editors=[] if reasons["may_raise"] else editors_of(event.cluster, event.namespace),
            as_of=as_of(self.request, event),
            **self._alike(event),
            **self._tab(tab, event, reasons),
        )

    def _alike(self, event: AuditEvent) -> dict[str, Any]:
        """Denials of the same owner for the same reason, as the log groups them."""
        if event.allowed:
            return {}
        owner = recorded_owner(event)
        asked = {
            "cluster": event.cluster,
            "namespace": event.namespace,
            "kind": event.kind,
            "verdict": "denied",
            "name": f"{owner.name}-" if owner.name else event.name,
            "reason": event.violations[0]["reason"] if event.violations else "",
        }
        search = Search(asked, visible_decisions(self.request.user))
        if not search.is_valid:
            return {}
        number, since = search.extent()
        return {"alike": number, "alike_since": since, "alike_query": with_fields(asked)}

    def _tab(self, tab: str, event: AuditEvent, reasons: dict[str, Any]) -> dict[str, Any]:
        """What only the open tab shows."""
        if tab == "object":
            return {
                "patched": object_diff.patched(event),
                "updated": object_diff.updated(event),
                "patch": [_patch_operation(each) for each in event.patch],
            }
        if tab == "reproduce":
            return {"copies": self._copies(event, reasons["explanation"])}
        if tab == "raw":
            return {
                "sentence": sentence(event),
                "recorded": [
                    ("Violations", event.violations),
                    ("Violations of policies that only warn or audit", event.observed),
                ],
                "patch": [_patch_operation(each) for each in event.patch],
                "judged": _pretty_json(event.request.get("object")),
                "judged_before": _pretty_json(event.request.get("oldObject")),
                "evaluated": [(each, reasons["links"].policy(each)) for each in event.policies],
            }
        return {}

    def _copies(self, event: AuditEvent, explanation: Explanation) -> list[Any]:
        if explanation.request is None:
            return []
        address = settings.GATEHOUSE_EXTERNAL_URL or self.request.build_absolute_uri("/")
        all_copies = copies(event, explanation.request, explanation.rules, address)
        return [each for each in all_copies if len(each.text) <= LONGEST]


def editors_of(cluster: str, namespace: str) -> Sequence[str]:
    """Some people and groups who may edit the policies of a namespace, by name; one query."""
    place = Q(cluster__in=("", cluster)) & Q(role__in=_EDITING)
    bindings = RoleBinding.objects.filter(place).select_related("user", "group")
    covering = (each for each in bindings.order_by("pk") if each.covers(cluster, namespace))
    names = (
        (each.user.get_full_name() or each.user.get_username()) if each.user else str(each.group)
        for each in covering
    )
    return list(dict.fromkeys(names))[:EDITORS_SHOWN]


def _set_by(origin: Origin, found: Explanation, links: PolicyLinks) -> SetBy:
    revision = origin.revision
    return SetBy(
        revision=revision,
        link=links.of_revision(revision),
        behind=found.changes.get(revision.pk),
        words=changed_words(origin),
    )


def _raise(quota_raise: QuotaRaise, links: PolicyLinks) -> dict[str, Any]:
    policy = {"kind": "ResourceQuota", "name": quota_raise.quota}
    return {
        "name": quota_raise.quota,
        "limits": quota_raise.limits,
        "link": links.policy(policy),
    }


def _suggested(request: AdmissionRequest, way_out: WayOut) -> dict[str, Any]:
    """One suggestion for the page: its changes, the lines they make, a manifest to take along."""
    found = way_out.suggestion
    object_before, object_after = request.object or {}, found.request.object or {}
    return {
        "changes": found.changes,
        "lines": object_diff.lines_between(object_before, object_after),
        "today": way_out.today,
        "text": as_kubectl(dataclasses.replace(request, object=object_after)),
    }


def _patch_operation(patch_operation: dict[str, Any]) -> dict[str, Any]:
    patched = json.dumps(patch_operation.get("value"), ensure_ascii=False, sort_keys=True)
    return {**patch_operation, "value": "" if patch_operation.get("op") == "remove" else patched}


def _pretty_json(json_value: Any) -> str:
    if json_value is None:
        return ""
    text = json.dumps(json_value, ensure_ascii=False, indent=2, sort_keys=True)
    return (
        text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… cut here; the API returns all of it"
    )
