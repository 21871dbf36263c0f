"""Search for the smallest change that would have passed, verified by the engine.

One field first, then two, then as many as it takes; a search that ends after so many questions.
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
QUESTIONS: Final = 400
"""The engine is asked so often at most: some ten milliseconds."""
SECONDS: Final = 0.2
"""For an object that takes long to judge: after that no further question."""
LONGEST: Final = 12
"""More changes than that are no advice."""

Changes = tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Changes under which the request passes, as the engine said when asked."""

    changes: Changes
    request: AdmissionRequest


class _Search:
    """Asks the engine about an object with changes, each set of them once."""

    def __init__(
        self, request: AdmissionRequest, policies: PolicySet, classes: Sequence[str]
    ) -> None:
        self.request, self.policies, self.classes = request, policies, classes
        self.left = QUESTIONS
        self.until = time.monotonic() + SECONDS
        self._known: set[frozenset[tuple[object, str]]] = set()

    def with_changes(self, changes: Changes) -> AdmissionRequest:
        """The request with the changes made to its object."""
        return dataclasses.replace(self.request, object=changed(self.request.object or {}, changes))

    def ask(self, changes: Changes) -> Decision | None:
        """What the engine says; None if it was asked that before, or often enough."""
        key = frozenset((change.path, change.new_text) for change in changes)
        is_over = not self.left or time.monotonic() > self.until
        if key in self._known or (is_over and changes):
            return None
        self._known.add(key)
        self.left -= 1
        return judge(self.with_changes(changes), self.policies)

    def forget(self) -> None:
        """Ask anew about changes that were tried in passing."""
        self._known.clear()

    def steps(self, changes: Changes, decision: Decision) -> Iterator[Changes]:
        """The changes, and one more; a field that was changed already gets another value."""
        request = self.with_changes(changes)
        for more in candidates(decision.violations, request, self.policies, self.classes):
            # A change of what is changed already becomes one of the original object.
            first = next((each for each in changes if each.path == more.path), None)
            added = dataclasses.replace(more, old=first.old) if first else more
            yield (*(each for each in changes if each.path != more.path), added)


def suggest(
    request: AdmissionRequest, policies: PolicySet, classes: Sequence[str] = ()
) -> list[Suggestion]:
    """Find small changes under which a refused request passes; none where it needs none."""
    search = _Search(request, policies, classes)
    decision = search.ask(())
    if decision is None or decision.allowed:
        return []
    found, next_to = _tried(search, [((), decision)])
    if not found:
        found, _ = _tried(search, next_to)
    if not found:
        found = _one_by_one(search, decision)
    found.sort(key=len)
    return [
        Suggestion(changes=changes, request=search.with_changes(changes))
        for changes in found[:SHOWN]
    ]


def _tried(
    search: _Search, starts: list[tuple[Changes, Decision]]
) -> tuple[list[Changes], list[tuple[Changes, Decision]]]:
    """Try one change more from each start: what passes, and what does not."""
    passing: list[Changes] = []
    others: list[tuple[Changes, Decision]] = []
    for changes, decision in starts:
        for longer in search.steps(changes, decision):
            said = search.ask(longer)
            if said is not None and said.allowed:
                passing.append(longer)
            elif said is not None:
                others.append((longer, said))
            if len(passing) == SHOWN:
                return passing, others
    return passing, others


def _one_by_one(search: _Search, decision: Decision) -> list[Changes]:
    """Go on with whatever leaves the fewest violations, as long as there are fewer and fewer."""
    changes: Changes = ()
    search.left = QUESTIONS
    while len(changes) < LONGEST:
        search.forget()
        passing, others = _tried(search, [(changes, decision)])
        if passing:
            return passing[:1]
        if not others:
            return []
        longer, said = min(others, key=lambda each: len(each[1].violations))
        if len(said.violations) >= len(decision.violations) and len(longer) <= len(changes):
            return []
        changes, decision = longer, said
    return []
