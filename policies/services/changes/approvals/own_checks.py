"""``own_checks`` of a change, which no worker has to carry out: kept tests, lints, the base."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from policies import snapshot
from policies.change_sets.approvals.checks import CheckKind, CheckResult, CheckState
from policies.lints import lint_namespace
from policies.models import Cluster, KeptTest, PriorityClass
from policies.services.preview import stored_by_key
from policies.simulation import judged, with_proposed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.kept_tests import JudgedTest
    from engine.policy import PolicySet
    from policies.lints import Lint
    from policies.models import ChangeItem, ChangeSet

    BothSets = dict[str, tuple[PolicySet, PolicySet]]

_NAMED: Final = 3
"""Red tests, lints and objects that the words of a check name."""


def own_checks(items: Sequence[ChangeItem]) -> tuple[CheckResult, ...]:
    """The checks that need no worker, against what is stored now; some queries a cluster."""
    red: list[str] = []
    tests, lints, moved = 0, list[str](), list[str]()
    for cluster, of_cluster in by_cluster(items):
        moved += [str(item) for item in moved_items(cluster, of_cluster)]
        try:
            both = proposed_sets(cluster, of_cluster)
        except DecodeError as error:
            return (*_unreadable(str(error)), _base_check(moved))
        results = _judged_tests(cluster, both)
        tests += len(results)
        red += [each.test.name for each in results if not each.passes]
        lints += [str(lint) for lint in new_lints(cluster, both)]
    return _tests_check(tests, red), _lints_check(lints), _base_check(moved)


def tests_check(cluster: Cluster, namespaces: Iterable[str]) -> CheckResult:
    """The kept tests of some namespaces, judged under what is stored now."""
    stored = snapshot.load_many(cluster.name, sorted(namespaces))
    results = _judged_tests(cluster, {name: (each, each) for name, each in stored.items()})
    return _tests_check(len(results), [each.test.name for each in results if not each.passes])


def by_cluster(items: Iterable[ChangeItem]) -> Iterator[tuple[Cluster, list[ChangeItem]]]:
    """The objects of each cluster that there is."""
    found: dict[str, list[ChangeItem]] = defaultdict(list)
    for item in items:
        found[item.cluster].append(item)
    for cluster in Cluster.objects.filter(name__in=found).order_by("name"):
        yield cluster, found[cluster.name]


def proposed_sets(cluster: Cluster, items: Sequence[ChangeItem]) -> BothSets:
    """The policies of each namespace, as stored and as proposed; raises ``DecodeError``."""
    of_namespace: dict[str, list[ChangeItem]] = defaultdict(list)
    for item in items:
        of_namespace[item.namespace].append(item)
    stored = snapshot.load_many(cluster.name, sorted(of_namespace))
    return {
        name: (stored[name], _proposed(stored[name], of_place))
        for name, of_place in of_namespace.items()
    }


def proposed_sets_of(change: ChangeSet) -> Iterator[tuple[Cluster, BothSets]]:
    """The policies of each cluster's namespaces, as stored and as a change proposes.

    Raises ``DecodeError`` for a content that cannot be read.
    """
    for cluster, items in by_cluster(change.items.all()):
        yield cluster, proposed_sets(cluster, items)


def _proposed(policies: PolicySet, items: Iterable[ChangeItem]) -> PolicySet:
    items = list(items)
    contents = [item.content for item in items if item.content is not None]
    gone = {(item.kind, item.name) for item in items if item.content is None}
    return with_proposed(policies, contents=contents, gone=gone)


def moved_items(cluster: Cluster, items: Sequence[ChangeItem]) -> list[ChangeItem]:
    """The objects that were written since the change was based on them."""
    stored: Mapping[Any, Any] = stored_by_key(cluster, [item.key for item in items])
    revisions = {key: each.revision for key, each in stored.items()}
    return [item for item in items if revisions.get(item.key, 0) != item.base_revision]


def _judged_tests(cluster: Cluster, both: BothSets) -> list[JudgedTest]:
    tests = KeptTest.objects.filter(namespace__cluster=cluster, namespace__name__in=both)
    of_namespace: dict[str, list[KeptTest]] = defaultdict(list)
    for test in tests.select_related("namespace__cluster"):
        of_namespace[test.namespace.name].append(test)
    return [
        result
        for name, of_place in sorted(of_namespace.items())
        for result in judged(of_place, both[name][1])
    ]


def new_lints(cluster: Cluster, both: BothSets) -> list[Lint]:
    """The lints that the change brings with it."""
    names = PriorityClass.objects.filter(cluster=cluster).values_list("name", flat=True)
    classes = frozenset(names)
    found = []
    for before, after in both.values():
        known = set(map(str, lint_namespace(before, priority_classes=classes)))
        lints = lint_namespace(after, priority_classes=classes)
        found += [lint for lint in lints if str(lint) not in known]
    return found


def _tests_check(number: int, red: Sequence[str]) -> CheckResult:
    if red:
        words = f"{len(red)} of {number} fail: {_first(red)}"
        return _result(CheckKind.TESTS, CheckState.FAILED, len(red), words)
    words = f"{number} of {number} pass" if number else "none kept in these namespaces"
    return _result(CheckKind.TESTS, CheckState.PASSED, 0, words)


def _lints_check(lints: Sequence[str]) -> CheckResult:
    state = CheckState.WARNED if lints else CheckState.PASSED
    words = f"{len(lints)} new: {_first(lints)}" if lints else "no new one"
    return _result(CheckKind.LINTS, state, len(lints), words)


def _base_check(moved: Sequence[str]) -> CheckResult:
    if moved:
        return _result(
            CheckKind.BASE, CheckState.FAILED, len(moved), f"was written since: {_first(moved)}"
        )
    return _result(CheckKind.BASE, CheckState.PASSED, 0, "not moved since the draft")


def _unreadable(words: str) -> tuple[CheckResult, CheckResult]:
    tests, lints = (
        _result(kind, CheckState.FAILED, None, words) for kind in (CheckKind.TESTS, CheckKind.LINTS)
    )
    return tests, lints


def _first(named: Sequence[str]) -> str:
    more = len(named) - _NAMED
    return ", ".join(named[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _result(kind: CheckKind, state: CheckState, number: int | None, words: str) -> CheckResult:
    return CheckResult(kind=kind, state=state, number=number, words=words)
