"""Suggestions: the smallest set of changes that the engine allows; the search's starts and limits.

One field first, then two, then more; the search ends after a number of decisions or a time.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from admission.explain.candidates import candidates
from admission.explain.object_diff import FieldChange, changed
from admission.explain.redecide import judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.decision import Decision
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest

SHOWN: Final = 3
MOST_DECISIONS: Final = 400
"""Decisions of one search at most: some ten milliseconds."""
SECONDS: Final = 0.2
"""The time of one search at most, for objects that take long to decide."""
LONGEST: Final = 12
"""Changes of one suggestion at most: more would be no advice."""

Changes = tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Changes under which the engine allows the request."""

    changes: Changes
    request: AdmissionRequest


class _ChangeSearch:
    """Decides a request with changes to its object, each set of changes once."""

    def __init__(
        self, request: AdmissionRequest, policies: PolicySet, classes: Sequence[str]
    ) -> None:
        self.request, self.policies, self.classes = request, policies, classes
        self.left = MOST_DECISIONS
        self.until = time.monotonic() + SECONDS
        self._tried_changes: set[frozenset[tuple[object, str]]] = set()

    def with_changes(self, changes: Changes) -> AdmissionRequest:
        """The request with the changes made to its object."""
        return dataclasses.replace(self.request, object=changed(self.request.object or {}, changes))

    def decide(self, changes: Changes) -> Decision | None:
        """The engine's decision; None if it was made before, or the search is over."""
        change_set = frozenset((change.path, change.new_text) for change in changes)
        # The first decision is always made: without it there is nothing to improve.
        is_over = not self.left or time.monotonic() > self.until
        if change_set in self._tried_changes or (is_over and changes):
            return None
        self._tried_changes.add(change_set)
        self.left -= 1
        return judge(self.with_changes(changes), self.policies)

    def forget(self) -> None:
        """Allow sets of changes that were tried before to be tried again."""
        self._tried_changes.clear()

    def steps(self, changes: Changes, decision: Decision) -> Iterator[Changes]:
        """The changes, and one more; a field that was changed already gets another value."""
        request = self.with_changes(changes)
        for guessed in candidates(decision.violations, request, self.policies, self.classes):
            # A change of what is changed already becomes one of the original object.
            earlier = next((change for change in changes if change.path == guessed.path), None)
            added = dataclasses.replace(guessed, old=earlier.old) if earlier else guessed
            yield (*(change for change in changes if change.path != guessed.path), added)


def suggest(
    request: AdmissionRequest, policies: PolicySet, classes: Sequence[str] = ()
) -> list[Suggestion]:
    """Find small changes under which a refused request passes; none where it needs none."""
    search = _ChangeSearch(request, policies, classes)
    decision = search.decide(())
    if decision is None or decision.allowed:
        return []
    passing, refused_next = _tried_one_more(search, [((), decision)])
    if not passing:
        passing, _ = _tried_one_more(search, refused_next)
    if not passing:
        passing = _one_by_one(search, decision)
    passing.sort(key=len)
    return [
        Suggestion(changes=changes, request=search.with_changes(changes))
        for changes in passing[:SHOWN]
    ]


def _tried_one_more(
    search: _ChangeSearch, starts: list[tuple[Changes, Decision]]
) -> tuple[list[Changes], list[tuple[Changes, Decision]]]:
    """Try one more change from each start; returns those that pass, and the others."""
    passing: list[Changes] = []
    still_refused: list[tuple[Changes, Decision]] = []
    for changes, decision in starts:
        for more_changes in search.steps(changes, decision):
            decided = search.decide(more_changes)
            if decided is not None and decided.allowed:
                passing.append(more_changes)
            elif decided is not None:
                still_refused.append((more_changes, decided))
            if len(passing) == SHOWN:
                return passing, still_refused
    return passing, still_refused


def _one_by_one(search: _ChangeSearch, decision: Decision) -> list[Changes]:
    """Repeat the change that leaves the fewest violations, as long as their number falls."""
    changes: Changes = ()
    search.left = MOST_DECISIONS
    while len(changes) < LONGEST:
        search.forget()
        passing, still_refused = _tried_one_more(search, [(changes, decision)])
        if passing:
            return passing[:1]
        if not still_refused:
            return []
        longer, best = min(still_refused, key=lambda tried: len(tried[1].violations))
        if len(best.violations) >= len(decision.violations) and len(longer) <= len(changes):
            return []
        changes, decision = longer, best
    return []
