"""Dangers of saving a draft: rules that refuse everything, running pods that could not restart.

Whoever saves such a thing has to type where; pages, forms and imports ask here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.policy import Enforcement, decode_enforcement
from policies.lints import LintCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.policy import PolicySet
    from policies.drafts.draft import PolicyPlace
    from policies.lints import Lint

    Teller = Callable[[PolicyPlace, Mapping[str, Any], PolicySet], Sequence[str]]

REFUSING: Final = frozenset({LintCode.REFUSES_EVERYTHING, LintCode.UNSATISFIABLE_RANGES})
"""Lints of what lets nothing pass."""
tellers: list[Teller] = []
"""Who else is asked: the portal knows what runs, and adds itself at its start."""


def dangers_of(
    place: PolicyPlace, manifest: Mapping[str, Any], before: PolicySet, lints: Iterable[Lint]
) -> list[str]:
    """Say in words what saving would stop; empty where nothing is known of, or only reported.

    ``lints`` are those of the namespace as it would be, as far as the manifest brings them.
    """
    if mode_of(manifest) is not Enforcement.ENFORCE:
        return []
    messages = list(dict.fromkeys(lint.message for lint in lints if lint.code in REFUSING))
    for teller in tellers:
        messages += teller(place, manifest, before)
    return messages


def mode_of(manifest: Mapping[str, Any]) -> Enforcement:
    """Whether a manifest is enforced, or only reports."""
    return decode_enforcement((manifest.get("metadata") or {}).get("annotations"))


def word_for(namespaces: Iterable[str]) -> str:
    """What has to be typed: the name of the one namespace, else how many there are."""
    names = sorted(set(namespaces))
    return names[0] if len(names) == 1 else str(len(names))
