"""``kept_results``: the kept tests of the draft's namespace, judged with the draft, red first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies import simulation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.kept_tests import JudgedTest
    from engine.policy import PolicySet
    from policies.drafts.draft import Draft, PolicyPlace

SHOWN: Final = 20
"""Results that the tab lists; all tests of the namespace are judged, which are never many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLine:
    """A judged test, and the key of its page."""

    pk: int
    judged: JudgedTest


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResults:
    """The first results, and how many there are; ``lines`` is empty without tests."""

    lines: Sequence[KeptLine]
    number: int
    red: int

    @property
    def left_out(self) -> int:
        """How many are not listed."""
        return self.number - len(self.lines)


def kept_results(place: PolicyPlace, draft: Draft, before: PolicySet | None) -> dict[str, Any]:
    """The results for the template; nothing for a draft that may not be saved as it is."""
    if before is None or draft.manifest is None or not draft.is_fine:
        return {}
    tests = simulation.tests_of(place.cluster.name, place.namespace_name)
    after = simulation.with_unsaved(before, [draft.manifest]) if tests else before
    results = simulation.judged(tests, after)
    keys = {each.name: each.pk for each in tests}
    lines = [KeptLine(pk=keys[each.test.name], judged=each) for each in results[:SHOWN]]
    red = sum(not each.passes for each in results)
    return {"kept_tests": KeptResults(lines=lines, number=len(results), red=red)}
