"""EffectLines of a class's new version: what it does in its namespaces, and to running pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from admission.explain.class_restarts import MOST_NAMESPACES, PolicyChange, restarts_of_changes
from policies.manifests import diff_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.services import ClassPreview, PolicyEffect

SHOWN: Final = 6
"""Namespaces that are named for one effect; the others are counted."""


@dataclass(slots=True)
class EffectLine:
    """The same effect on policies of many namespaces: what is done, in words, and where."""

    action: str
    kind: str
    name: str
    changes: Sequence[str]
    places: list[str] = field(default_factory=list)

    @property
    def shown(self) -> Sequence[str]:
        """The first of them, to be named."""
        return self.places[:SHOWN]

    @property
    def others(self) -> int:
        """How many more there are."""
        return len(self.places) - len(self.shown)


def lines_of(effects: Sequence[PolicyEffect]) -> list[EffectLine]:
    """Put equal effects together, the most frequent first."""
    lines: dict[tuple[Any, ...], EffectLine] = {}
    words: dict[str, Sequence[str]] = {}
    for each in effects:
        kind, namespace, name = each.key
        content = repr([_nowhere(each.before), _nowhere(each.after)])
        if content not in words:
            words[content] = diff_in_words.changes(each.before, each.after)
        key = (each.action, kind, name, content)
        line = lines.setdefault(key, EffectLine(each.action, kind, name, words[content]))
        line.places.append(f"{each.cluster}/{namespace}")
    return sorted(lines.values(), key=lambda line: -len(line.places))


def _nowhere(manifest: Any) -> Any:
    return manifest and {**manifest, "metadata": {**manifest["metadata"], "namespace": ""}}


def effects_context(preview: ClassPreview) -> dict[str, Any]:
    """What templates say of a preview: the lines, their numbers, the pods that would not start."""
    changes = [
        PolicyChange(
            cluster=each.cluster, namespace=each.key[1], before=each.before, after=each.after
        )
        for each in preview.effects
    ]
    return {
        "preview": preview,
        "matched": sum(map(len, preview.namespaces.values())),
        "touched": len({(each.cluster, each.namespace) for each in changes}),
        "lines": lines_of(preview.effects),
        "made": len(preview.having("make")),
        "altered": len(preview.having("change")),
        "removals": len(preview.having("remove")),
        "restarts": restarts_of_changes(changes),
        "restarts_most": MOST_NAMESPACES,
    }
