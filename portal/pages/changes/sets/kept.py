"""ChangeTestsView: the kept tests of a change's namespaces, judged with what it proposes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from admission.replay.of_change import proposals_of
from admission.replay.policies import Proposal, drafted
from admission.replay.work import base_of
from policies import simulation, snapshot
from policies.services import changes
from portal.pages.changes.sets.frame import ChangePage, tests_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from engine.kept_tests import JudgedTest
    from policies.models import KeptTest

MOST_RUN: Final = 2_000
"""So many tests are judged for one page; the API judges those of a namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestLine:
    """A judged test, its place, and the key of its page."""

    __test__ = False

    pk: int
    cluster: str
    namespace: str
    judged: JudgedTest


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTestRun:
    """The judged tests, red ones first; ``unread`` are places whose policies cannot be judged."""

    lines: Sequence[TestLine]
    unread: Sequence[str]
    left_out: int

    @property
    def red(self) -> int:
        """How many are not answered as expected."""
        return sum(not each.judged.passes for each in self.lines)

    @property
    def passed(self) -> int:
        """How many are."""
        return len(self.lines) - self.red


class ChangeTestsView(ChangePage):
    """The tests of the namespaces that a change writes; nothing is stored."""

    template_name = "changes/sets/tests.html"
    route = "change-tests"
    http_method_names = ["get", "head"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Judge them; those of a change that is over by the policies in force."""
        is_open = "edit" in self.change.steps_allowed
        items = changes.visible_items(self.change, self.request.user) if is_open else ()
        proposals = proposals_of(items)
        run = run_tests(tests_at(self.groups, self.request.user), proposals)
        return super().get_context_data(**kwargs, run=run, is_open=is_open)


def run_tests(tests: QuerySet[KeptTest], proposals: dict[str, Proposal]) -> ChangeTestRun:
    """Judge tests by the policies in force with proposed ones in their place; constant queries."""
    ordered = tests.select_related("namespace__cluster").order_by(
        "namespace__cluster__name", "namespace__name", "name"
    )
    found = list(ordered[:MOST_RUN])
    known = snapshot.refresh().clusters if found else {}
    lines: list[TestLine] = []
    unread: list[str] = []
    for cluster, of_cluster in groupby(found, key=lambda each: each.owner.name):
        base = base_of(known[cluster])
        policies = drafted(base, proposals.get(cluster, Proposal()))
        for namespace, of_namespace in groupby(of_cluster, key=lambda each: each.namespace_name):
            if namespace in base.unreadable:
                unread.append(f"{cluster}/{namespace}")
                continue
            of_name = {each.name: each for each in of_namespace}
            lines += (
                TestLine(
                    pk=of_name[each.test.name].pk,
                    cluster=cluster,
                    namespace=namespace,
                    judged=each,
                )
                for each in simulation.judged(of_name.values(), policies.of(namespace))
            )
    lines.sort(key=lambda each: each.judged.passes)
    left_out = tests.count() - MOST_RUN if len(found) == MOST_RUN else 0
    return ChangeTestRun(lines=lines, unread=unread, left_out=left_out)
