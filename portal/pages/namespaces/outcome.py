"""Outcome of a trial for its template: CauseTexts, ResultLines, PlacedViolations, quota Strips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.manifests.documents import ManifestError
from policies.manifests.sources import parse_documents
from policies.simulation import FieldSource
from portal.pages.clusters.drift.sides import lines_of_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.decision import Violation
    from engine.policy import PolicyRef
    from policies.simulation import Cause, CostLine, ExplainedField, Simulation
    from portal.pages.namespaces.try_object import Trial

SOURCE_WORDS: Final = {
    FieldSource.PORTAL: "Gatehouse, for every pod",
    FieldSource.API_SERVER: "the API server, while reading it",
}


@dataclass(frozen=True, slots=True)
class CauseText:
    """The cause of a change or violation in words, and its anchor on the page."""

    words: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class ResultLine:
    """A line of the resulting object; ``by`` where something changed there."""

    text: str
    by: CauseText | None = None


@dataclass(frozen=True, slots=True)
class PlacedViolation:
    """One violation with its policy, and its line in the pasted text."""

    reason: str
    message: str
    field: str
    by: CauseText | None
    line: int


def anchor_of(ref: PolicyRef) -> str:
    """The id of a policy's row on the page."""
    return f"policy-{ref.kind.lower()}-{ref.name}"


def by_policy(ref: PolicyRef, rule: int | None = None) -> CauseText:
    """Name a policy, and its rule with the number that denials give it."""
    rule_words = "" if rule is None else f", rule {rule}"
    return CauseText(f"{ref.kind} {ref.name}{rule_words}", anchor_of(ref))


def by_cause(cause: Cause) -> CauseText:
    """Name the cause of a change."""
    if cause.policy is None:
        return CauseText(SOURCE_WORDS[cause.source])
    return by_policy(cause.policy, cause.rule)


def outcome_of(trial: Trial) -> dict[str, Any]:
    """The context of the outcome's template for one trial."""
    simulated = trial.simulation
    if simulated is None:
        return {"attempt": trial, "problems": trial.problems}
    outcome_look = "mutated" if simulated.changes else "allowed"
    return {
        "attempt": trial,
        "found": simulated,
        "look": outcome_look if simulated.is_admitted else "denied",
        "lines": lines_of(simulated),
        "changes": [(change, by_cause(change.cause)) for change in simulated.changes],
        "refusals": _placed_violations(simulated.refusals, trial),
        "observed": _placed_violations(simulated.only_observed, trial),
        "warnings": simulated.decision.warnings,
        "costs": [
            (cost, [Strip(line, *_state(line)) for line in cost.lines]) for cost in simulated.costs
        ],
        "binding": simulated.binding,
    }


def lines_of(simulated: Simulation) -> list[ResultLine]:
    """The object as it would be stored; each changed line with its cause."""
    stored_object = simulated.decision.object
    object_lines = lines_of_manifest(stored_object if isinstance(stored_object, dict) else None)
    causes = _causes_by_line(object_lines, simulated.changes)
    return [ResultLine(text, causes.get(number)) for number, text in enumerate(object_lines, 1)]


def _causes_by_line(
    object_lines: list[str], changes: Iterable[ExplainedField]
) -> dict[int, CauseText]:
    # The lines are parsed again because only the parser knows which line holds which field.
    try:
        parsed_documents = parse_documents("\n".join(object_lines), "object")
    except ManifestError:
        return {}
    field_places = parsed_documents[0].places if parsed_documents else {}
    return {
        field_places[change.path][0]: by_cause(change.cause)
        for change in changes
        if change.path in field_places
    }


def _placed_violations(violations: Iterable[Violation], trial: Trial) -> list[PlacedViolation]:
    return [
        PlacedViolation(
            reason=violation.reason.value,
            message=violation.message,
            field=violation.field,
            by=by_policy(violation.policy, violation.rule) if violation.policy else None,
            line=trial.line_of(violation.field),
        )
        for violation in violations
    ]


@dataclass(frozen=True, slots=True)
class Strip:
    """One resource of a quota as a bar of two lengths, and their meaning in words."""

    line: CostLine
    look: str
    words: str


def _state(line: CostLine) -> tuple[str, str]:
    if line.is_blocked:
        return "blocked", "blocked: the limit is 0"
    if line.used is None:
        return "idle", "unknown how much is used: existing objects are not counted yet"
    if line.is_over:
        return "over", "too much for what is left"
    if line.room is None:
        return "idle", "not asked for"
    return "fits", f"room for {line.room:,} like this, this one included"
