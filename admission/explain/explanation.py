"""Explanation of a recorded decision: rules of then, the verdict today, suggestions, origins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from admission.explain import origins, redecide
from admission.explain.changes_behind import changes_behind
from admission.explain.raised_limits import raised_limits
from admission.explain.suggest import suggest
from policies.models import PriorityClass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from admission.explain.changes_behind import ChangeBehind
    from admission.explain.origins import Origin
    from admission.explain.raised_limits import QuotaRaise
    from admission.explain.redecide import Rules
    from admission.explain.suggest import Suggestion
    from admission.models import AuditEvent
    from engine.decision import Decision
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest
    from policies.models import PolicyRevision

_CLASSES_TRIED: Final = 20
"""The search tries each class with each other change: a few of the highest are enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """Changes under which the request would have passed, and today's decision about them."""

    suggestion: Suggestion
    today: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The reasons of a decision; ``request`` and ``today`` are None if the row tells too little.

    ``rules`` are those of then, None if they cannot be told; then ``ways_out`` follow today's.
    ``revisions`` are of the evaluated policies, ``todays`` the policies of today. ``changes`` are
    those behind the revisions of ``deciding`` and ``since``, by the revision's id.
    """

    deciding: Sequence[Origin]
    since: Sequence[Origin]
    revisions: Sequence[PolicyRevision] = field(default=())
    changes: Mapping[int, ChangeBehind] = field(default_factory=dict)
    request: AdmissionRequest | None = None
    rules: Rules | None = None
    todays: PolicySet | None = None
    today: Decision | None = None
    ways_out: Sequence[WayOut] = field(default=())
    raises: Sequence[QuotaRaise] = field(default=())


def explain(event: AuditEvent, *, whole: bool) -> Explanation:
    """Explain a decision; one query more for each exceeded quota.

    ``whole``: include the changes of the whole cluster since then, not only the namespace's.
    """
    revisions = redecide.revisions_of(event)
    deciding, since = origins.deciding(event, revisions), origins.since(event, whole=whole)
    changes = changes_behind(each.revision for each in (*deciding, *since))
    request = redecide.request_of(event)
    if request is None:
        return Explanation(deciding=deciding, since=since, revisions=revisions, changes=changes)
    rules = redecide.rules_then(event, revisions)
    # Rules that do not lead to the recorded verdict are not those of then: better none.
    if rules is not None and not redecide.agrees(event, request, rules):
        rules = None
    todays = redecide.rules_now(event)
    found = _suggestions(event, request, rules.policies if rules else todays)
    today = redecide.judge(request, todays)
    return Explanation(
        deciding=deciding,
        since=since,
        revisions=revisions,
        changes=changes,
        request=request,
        rules=rules,
        todays=todays,
        today=today,
        raises=() if event.allowed else raised_limits(request, todays, today),
        ways_out=[
            WayOut(suggestion=each, today=redecide.judge(each.request, todays)) for each in found
        ],
    )


def _suggestions(
    event: AuditEvent, request: AdmissionRequest, policies: PolicySet
) -> list[Suggestion]:
    if event.allowed:
        return []
    names = PriorityClass.objects.filter(cluster__name=event.cluster).order_by("-value", "name")
    return suggest(request, policies, list(names.values_list("name", flat=True)[:_CLASSES_TRIED]))
