"""Dangers in words of saving an enforced draft: refusing lints, other sources; the word to type.

Pages and imports make the user type the namespace before they save a dangerous draft.
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

    Source = Callable[[PolicyPlace, Mapping[str, Any], PolicySet], Sequence[str]]

REFUSING: Final = frozenset({LintCode.REFUSES_EVERYTHING, LintCode.UNSATISFIABLE_RANGES})
"""Lints of policies that let nothing pass."""
sources: list[Source] = []
"""Further sources of dangers: the portal, which knows what runs, adds its own when it starts."""


def dangers_of(
    place: PolicyPlace, manifest: Mapping[str, Any], before: PolicySet, lints: Iterable[Lint]
) -> list[str]:
    """The dangers of saving a manifest, in words; none of a policy that only warns or audits.

    ``lints`` are those that the manifest would add to its namespace.
    """
    if mode_of(manifest) is not Enforcement.ENFORCE:
        return []
    danger_messages = list(dict.fromkeys(lint.message for lint in lints if lint.code in REFUSING))
    for danger_source in sources:
        danger_messages += danger_source(place, manifest, before)
    return danger_messages


def mode_of(manifest: Mapping[str, Any]) -> Enforcement:
    """The enforcement of a manifest."""
    return decode_enforcement((manifest.get("metadata") or {}).get("annotations"))


def word_for(namespaces: Iterable[str]) -> str:
    """The word to type: the name of the one namespace, else the number of namespaces."""
    endangered = sorted(set(namespaces))
    return endangered[0] if len(endangered) == 1 else str(len(endangered))
