"""``Findings`` of parts of the chain: joined, weighed, skipped, sorted by enforcement, observed.

Violations refuse; observations go on record only; warnings are shown to the client.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.bounds import added
from engine.decision import Outcome, Reason, Step, Violation
from engine.policy import Enforcement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.policy import PolicyRef

NOTHING_MORE: Final[Mapping[Reason, int]] = {}
_WEIGHT: Final = 512  # bytes of a violation or a step, besides its text
_SHORT_REASON: Final = 128  # characters; longer reasons contain names and hardly repeat
_PORTALS_OWN: Final = frozenset({Reason.INSUFFICIENT_QUOTA, Reason.UNCOVERED_SCOPE})
"""Reasons that the API server enforces only with a configuration file, which few clusters have."""
AUTHORITY_STEP: Final = Step(
    name="Authority",
    outcome=Outcome.PASSED,
    detail="native: ranges and quotas are enforced by the API server, here they only warn",
)


class Findings(NamedTuple):
    """Violations that refuse, observed ones, warnings and trace, in the order of the chain.

    ``more`` and ``more_observed`` count by reason the violations that are not kept.
    """

    violations: tuple[Violation, ...] = ()
    observed: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    more: Mapping[Reason, int] = NOTHING_MORE
    more_observed: Mapping[Reason, int] = NOTHING_MORE


NOTHING_FOUND: Final = Findings()


def together(*all_findings: Findings) -> Findings:
    """Concatenate findings."""
    violations, observed, warnings, steps, more, more_observed = NOTHING_FOUND
    for findings in all_findings:
        violations += findings.violations
        observed += findings.observed
        warnings += findings.warnings
        steps += findings.steps
        if findings.more:
            more = added(more, findings.more)
        if findings.more_observed:
            more_observed = added(more_observed, findings.more_observed)
    return Findings(violations, observed, warnings, steps, more, more_observed)


def weigh(findings: Findings) -> int:
    """Estimate the bytes that findings take in memory."""
    weight = _WEIGHT * len(findings.steps)
    found = (*findings.violations, *findings.observed)
    if found or findings.warnings:
        weight += _WEIGHT * (len(found) + len(findings.warnings)) + sum(map(len, findings.warnings))
        weight += sum([len(each.message) for each in found])
        weight += sum([len(step.detail) for step in findings.steps])
    return weight


def skipped(name: str, why: str) -> Findings:
    """Trace that a part of the chain did not run, and why."""
    return (_skipped if len(why) <= _SHORT_REASON else _skipped_anew)(name, why)


def _skipped_anew(name: str, why: str) -> Findings:
    return Findings(steps=(Step(name=name, outcome=Outcome.SKIPPED, detail=why),))


_skipped = lru_cache(maxsize=1024)(_skipped_anew)


def sort_by_enforcement(
    violations: Iterable[Violation], modes: Mapping[PolicyRef, Enforcement]
) -> Findings:
    """Let only enforced policies refuse; ``warn`` shows a warning, ``audit`` only records."""
    refusing, observed, warnings = [], [], []
    for violation in violations:
        enforcement = modes.get(violation.policy) if violation.policy else None
        if enforcement in (None, Enforcement.ENFORCE):
            refusing.append(violation)
            continue
        observed.append(violation)
        if enforcement is Enforcement.WARN:
            warnings.append(describe(violation))
    return Findings(violations=tuple(refusing), observed=tuple(observed), warnings=tuple(warnings))


def describe(violation: Violation, why: str = "enforcement: warn") -> str:
    """Word the warning about a violation, and why it does not refuse."""
    policy = violation.policy
    name = f"{policy.kind} {policy.name}: " if policy else ""
    return f"{name}{violation.message} ({why})"


def only_observed(findings: Findings, mode: Enforcement) -> Findings:
    """Turn the violations of a policy that is not enforced into observations and warnings."""
    return findings._replace(
        violations=(),
        more={},
        observed=(*findings.violations, *findings.observed),
        more_observed=added(findings.more, findings.more_observed),
        warnings=tuple(describe(violation) for violation in findings.violations)
        if mode is Enforcement.WARN
        else (),
    )


def leave_to_plugins(findings: Findings) -> Findings:
    """Turn violations that the API server's own plugins decide into observations and warnings."""
    if not findings.violations:
        return findings
    portals = tuple([found for found in findings.violations if found.reason in _PORTALS_OWN])
    plugins = tuple([found for found in findings.violations if found.reason not in _PORTALS_OWN])
    return findings._replace(
        violations=portals,
        more={reason: n for reason, n in findings.more.items() if reason in _PORTALS_OWN},
        observed=(*plugins, *findings.observed),
        more_observed=added(
            {reason: n for reason, n in findings.more.items() if reason not in _PORTALS_OWN},
            findings.more_observed,
        ),
        warnings=(
            *[describe(found, "the API server decides") for found in plugins],
            *findings.warnings,
        ),
    )
