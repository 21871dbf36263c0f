"""WizardStep: the five steps at the left, each done, current or to come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sync.connect.probe import ProbeResult

_STEPS: Final = (
    ("paste", "Paste", "a kubeconfig"),
    ("test", "Test", "nothing is stored before it passes"),
    ("manifest", "Manifest", "download, then apply"),
    ("webhooks", "Webhooks seen", "waiting for the first review"),
    ("ownership", "Ownership", "what the portal writes"),
)


@dataclass(frozen=True, slots=True)
class WizardStep:
    """A step with its number; ``state`` is ``done``, ``current`` or empty."""

    key: str
    number: int
    title: str
    words: str
    state: str


def wizard_steps(
    *,
    current: str,
    findings: ProbeResult | None = None,
    done: frozenset[str] = frozenset(),
    words: dict[str, str] | None = None,
) -> Sequence[WizardStep]:
    """The steps; those before the current one are done, and others that are known to be."""
    keys = [key for key, _, _ in _STEPS]
    told = dict(words or {})
    if findings:
        told["test"] = "passed: connect next" if findings.is_usable else "failed: nothing is stored"
    return [
        WizardStep(
            key,
            number,
            title,
            told.get(key, usual),
            "current"
            if key == current
            else "done"
            if key in done or keys.index(key) < keys.index(current)
            else "",
        )
        for number, (key, title, usual) in enumerate(_STEPS, start=1)
    ]
