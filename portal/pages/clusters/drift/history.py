"""The history of a synced object: its revisions and resolutions."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.models import PolicyRevision
from portal.pages.clusters.drift.sides import Side, lines_of_manifest, sides_of
from sync.passes import undo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sync.models import SyncedObject

SHOWN: Final = 10
CHOSEN: Final = {"ours": "took all of ours", "theirs": "took all of theirs", "undone": "undid it"}


@dataclass(frozen=True, slots=True)
class Revision:
    """One write of our side; a line is (``+``, ``-`` or a space, text)."""

    revision: PolicyRevision
    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ResolutionRecord:
    """What somebody decided, in words, with all sides as they were."""

    revision: PolicyRevision
    words: str
    sides: Sequence[Side]
    is_undoable: bool
    comes_back_open: bool


def revisions_of(thing: SyncedObject) -> list[Revision]:
    """The last writes of our side, newest first."""
    names = {"kind": thing.kind, "namespace": thing.namespace, "name": thing.name}
    found = PolicyRevision.objects.of(cluster=thing.cluster.name, **names).order_by("-number")
    return [Revision(one, _changes(one.before, one.after)) for one in found[:SHOWN]]


def decisions_of(thing: SyncedObject) -> list[ResolutionRecord]:
    """The last decisions, newest first; one of them at most can be undone."""
    undoable = undo.can_be_undone(thing)
    return [_decision(thing, one, undoable) for one in undo.decisions(thing)]


def _decision(
    thing: SyncedObject, one: PolicyRevision, undoable: PolicyRevision | None
) -> ResolutionRecord:
    sides: dict[str, Any] = (one.before or {})["spec"]
    return ResolutionRecord(
        revision=one,
        words=_words((one.after or {})["spec"]["choices"]),
        sides=sides_of(sides["base"], sides["ours"], sides["theirs"]),
        is_undoable=undoable is not None and undoable.pk == one.pk,
        comes_back_open=undo.comes_back_open(thing, one),
    )


def _words(choices: str | Mapping[str, str]) -> str:
    if isinstance(choices, str):
        return CHOSEN.get(choices, choices)
    return "chose " + ", ".join(f"{field}: {side}" for field, side in choices.items())


def _changes(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> list[tuple[str, str]]:
    """All lines of both, with what was added and what was taken away."""
    compared = difflib.ndiff(lines_of_manifest(before), lines_of_manifest(after))
    return [(line[0], line[2:]) for line in compared if line[0] != "?"]
