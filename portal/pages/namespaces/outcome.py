"""The result of a trial in a namespace, for the page: lines, causes, quota bars."""

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

WORDS: Final = {
    FieldSource.PORTAL: "Gatehouse, for every pod",
    FieldSource.API_SERVER: "the API server, while reading it",
}


@dataclass(frozen=True, slots=True)
class By:
    """The cause of a change or violation in words, and its anchor on the page."""

    words: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class ResultLine:
    """A line of the resulting object; ``by`` where something changed there."""

    text: str
    by: By | None = None


@dataclass(frozen=True, slots=True)
class PlacedViolation:
    """One violation with its policy, and its line in the pasted text."""

    reason: str
    message: str
    field: str
    by: By | None
    line: int


def anchor_of(ref: PolicyRef) -> str:
    """The id of a policy's row on the page."""
    return f"policy-{ref.kind.lower()}-{ref.name}"


def by_policy(ref: PolicyRef, rule: int | None = None) -> By:
    """Name a policy, and its rule with the number that denials give it."""
    where = "" if rule is None else f", rule {rule}"
    return By(f"{ref.kind} {ref.name}{where}", anchor_of(ref))


def by_cause(cause: Cause) -> By:
    """Name the cause of a change."""
    if cause.policy is None:
        return By(WORDS[cause.source])
    return by_policy(cause.policy, cause.rule)


def outcome_of(attempt: Trial) -> dict[str, Any]:
    """The context of the outcome's template for one trial."""
    found = attempt.simulation
    if found is None:
        return {"attempt": attempt, "problems": attempt.problems}
    look = "mutated" if found.changes else "allowed"
    return {
        "attempt": attempt,
        "found": found,
        "look": look if found.is_admitted else "denied",
        "lines": lines_of(found),
        "changes": [(change, by_cause(change.cause)) for change in found.changes],
        "refusals": _placed(found.refusals, attempt),
        "observed": _placed(found.only_observed, attempt),
        "warnings": found.decision.warnings,
        "costs": [
            (cost, [Strip(line, *_state(line)) for line in cost.lines]) for cost in found.costs
        ],
        "binding": found.binding,
    }


def lines_of(found: Simulation) -> list[ResultLine]:
    """The object as it would be stored; each changed line with its cause."""
    obj = found.decision.object
    texts = lines_of_manifest(obj if isinstance(obj, dict) else None)
    changed = _changed_lines(texts, found.changes)
    return [ResultLine(text, changed.get(number)) for number, text in enumerate(texts, 1)]


def _changed_lines(texts: list[str], changes: Iterable[ExplainedField]) -> dict[int, By]:
    # The lines are parsed again because only the parser knows which line holds which field.
    try:
        documents = parse_documents("\n".join(texts), "object")
    except ManifestError:
        return {}
    places = documents[0].places if documents else {}
    return {
        places[change.path][0]: by_cause(change.cause)
        for change in changes
        if change.path in places
    }


def _placed(found: Iterable[Violation], attempt: Trial) -> list[PlacedViolation]:
    return [
        PlacedViolation(
            reason=each.reason.value,
            message=each.message,
            field=each.field,
            by=by_policy(each.policy, each.rule) if each.policy else None,
            line=attempt.line_of(each.field),
        )
        for each in found
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
    if line.is_over:
        return "over", "too much for what is left"
    if line.room is None:
        return "idle", "not asked for"
    return "fits", f"room for {line.room:,} like this, this one included"
