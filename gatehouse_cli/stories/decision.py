"""The story of one decision: verdict, violations, steps, charges, what would pass, and today."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.objects.times import shown_moment
from gatehouse_cli.stories.parts import aligned, part, policy_title

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gatehouse_cli.client.answers import (
        DecisionJson,
        ExplanationJson,
        OriginJson,
        PatchOperationJson,
        SuggestionJson,
        TodayJson,
    )

_COLOURS: Final = {
    "allowed": "green",
    "mutated": "green",
    "would-deny": "yellow",
    "denied": "red",
}


def decision_lines(decision: DecisionJson, explanation: ExplanationJson) -> Iterator[str]:
    """The lines of the story."""
    verdict = click.style(decision["verdict"], fg=_COLOURS.get(decision["verdict"]), bold=True)
    yield f"decision {decision['id']}: {verdict}, {shown_moment(decision['created'])}"
    yield explanation["sentence"]
    yield from part("Violations", _violations(decision["violations"]))
    yield from part("Found, and not enforced", _violations(decision["observed"]))
    yield from part("Steps", _steps(decision))
    yield from part("Changes to the object", map(_patched, decision["patch"]))
    yield from part("Charged", _charges(decision))
    yield from part(_heading_of_ways(explanation), _ways(explanation["suggestions"]))
    yield from part("Today", _today(explanation["today"]))
    yield from part("Policies that decided", map(_origin, explanation["deciding"]))
    yield from part("Changed since", map(_origin, explanation["since"]))


def _violations(violations: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for violation in violations:
        field = f" at {violation['field']}" if violation["field"] else ""
        yield click.style(violation["reason"], bold=True) + field
        yield f"  {violation['message']}"
        if by := policy_title(violation["policy"]):
            yield f"  by {by}"


def _steps(decision: DecisionJson) -> list[str]:
    rows = [
        (
            f"{number}. {policy_title(step['policy']) or step['name']}"
            + (f" (rule {step['rule']})" if step["rule"] is not None else ""),
            step["outcome"],
            step["detail"],
        )
        for number, step in enumerate(decision["trace"], 1)
    ]
    return aligned(rows) if rows else []


def _patched(operation: PatchOperationJson) -> str:
    value = f" = {json.dumps(operation['value'])}" if "value" in operation else ""
    return f"{operation['op']} {operation['path']}{value}"


def _charges(decision: DecisionJson) -> Iterator[str]:
    for charge in decision["charges"]:
        amounts = ", ".join(f"{name} {amount}" for name, amount in sorted(charge["delta"].items()))
        yield f"{policy_title(charge['quota'])}: {amounts or 'nothing more'}"


def _heading_of_ways(explanation: ExplanationJson) -> str:
    when = "" if explanation["is_of_then"] else " under the policies of now"
    return f"The smallest change that would have passed{when}"


def _ways(suggestions: list[SuggestionJson]) -> Iterator[str]:
    for number, suggestion in enumerate(suggestions, 1):
        today = "passes today" if suggestion["passes_today"] else "would not pass today"
        yield f"{number}. ({today})"
        for change in suggestion["changes"]:
            before, after = change["before"] or "nothing", change["after"] or "nothing"
            yield f"   {change['field']}: {before} → {after}"


def _today(today: TodayJson | None) -> Iterator[str]:
    if today is None:
        yield "unknown: the record tells too little"
        return
    verdict = "it would be allowed" if today["allowed"] else "it would be refused"
    yield f"{verdict}{', unlike then' if today['differs'] else ', as then'}"
    if not today["allowed"]:
        yield from _violations(today["violations"])


def _origin(origin: OriginJson) -> str:
    changes = f": {'; '.join(origin['changes'])}" if origin["changes"] else ""
    reason = _reason(origin)
    when = shown_moment(origin["created"])
    title = policy_title({**origin, "revision": None})
    return f"{title} by {origin['user']}, {when}{reason}{changes}"


def _reason(origin: OriginJson) -> str:
    # A portal of an earlier version has no such member.
    change = origin.get("change")
    if change is None:
        return f" ({origin['reason']})" if origin["reason"] else ""
    by = f"by {change['author']}"
    approved = f", approved by {', '.join(change['approvers'])}" if change["approvers"] else ""
    ticket = f", ticket {change['ticket']}" if change["ticket"] else ""
    return f" (change #{change['id']} {change['title']}, {by}{approved}{ticket})"
