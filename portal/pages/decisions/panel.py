"""DecisionPanel, the summary of a decision beside the log: its faults, ways out and origins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import redirect

from engine.decision import Reason
from engine.quantity import Quantity, QuantityError
from portal.pages.decisions.rows import owner_name
from portal.pages.decisions.why import WhyView
from portal.pages.decisions.words import patch_words, short_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from admission.models import AuditEvent

FAULTS_SHOWN: Final = 3
CHANGES_SHOWN: Final = 8
ORIGINS_SHOWN: Final = 2
_WHOLE: Final = 100


@dataclass(frozen=True, slots=True)
class RoomBar:
    """A quota's limit or its used amount with the request, whichever is more, as 100."""

    used: int
    refused: int


@dataclass(frozen=True, slots=True)
class PanelFault:
    """One violation in words, with the bar of the quota that had no room."""

    words: str
    bar: RoomBar | None = None


class DecisionPanel(WhyView):
    """A part of the log's page; opened as a page, it leads to the whole reasons."""

    template_name = "decisions/_panel.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a redirection, too
        """The part for scripts; everybody else gets the page."""
        if "HX-Request" not in request.headers:
            return redirect("decision-detail", kwargs["pk"])
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the page of the decision knows, cut short."""
        context = super().get_context_data(**kwargs)
        event: AuditEvent = context["event"]
        found = event.observed if event.allowed else event.violations
        faults = panel_faults(found)
        changes = patch_words(event.patch)
        return {
            **context,
            "name": owner_name(event),
            "headline": headline(event),
            "faults": faults[:FAULTS_SHOWN],
            "more_faults": len(faults[FAULTS_SHOWN:]) + event.more_violations + event.more_observed,
            "changes": changes[:CHANGES_SHOWN],
            "more_changes": len(changes[CHANGES_SHOWN:]),
            "origins": context["deciding"][:ORIGINS_SHOWN],
            "account": short_user(event.user),
        }


def headline(event: AuditEvent) -> str:
    """Who decided, in one sentence."""
    kind = event.kind or "review"
    found = event.observed if event.allowed else event.violations
    policy = (found[0].get("policy") or {}) if found else {}
    if not policy:
        if event.allowed and event.patch:
            return f"The {kind} was changed."
        return f"The {kind} was {'allowed as it is' if event.allowed else 'denied'}."
    if event.allowed:
        return f"{policy['kind']} {policy['name']} would refuse this {kind}."
    if found[0].get("reason") == Reason.EXCEEDED_QUOTA:
        place = f" in {policy['namespace']}" if policy.get("namespace") else ""
        return f"Quota {policy['name']}{place} has no room for this {kind}."
    return f"{policy['kind']} {policy['name']} refuses this {kind}."


def panel_faults(found: Iterable[Mapping[str, Any]]) -> list[PanelFault]:
    """Violations in words; those of quotas by resource, where Kubernetes repeats one message."""
    faults = {}
    for violation in found:
        numbers = violation.get("numbers") or {}
        bar = room_bar(numbers) if violation.get("reason") == Reason.EXCEEDED_QUOTA else None
        words = str(violation.get("message", ""))
        if bar:
            resource, used, requested, hard = (
                numbers[role] for role in ("resource", "used", "requested", "hard")
            )
            words = f"{resource}: {used} used + {requested} requested, the limit is {hard}"
        faults[words] = PanelFault(words, bar)
    return list(faults.values())


def room_bar(numbers: Mapping[str, str]) -> RoomBar | None:
    """The bar of an exceeded quota; None where an amount is missing or cannot be read."""
    try:
        used, requested, hard = (
            Quantity.parse(numbers[role]).ceil_milli() for role in ("used", "requested", "hard")
        )
    except (KeyError, QuantityError):
        return None
    scale = max(hard, used + requested)
    if scale <= 0 or "resource" not in numbers:
        return None
    used_part = round(_WHOLE * max(used, 0) / scale)
    return RoomBar(used=used_part, refused=_WHOLE - used_part if used + requested >= hard else 0)
