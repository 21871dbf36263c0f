"""Kept tests of a namespace judged under its policies, stored or with a draft: red ones first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.kept_tests import judge_test
from policies import snapshot
from policies.models import KeptTest
from policies.simulation.simulate import with_unsaved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.kept_tests import JudgedTest
    from engine.policy import PolicySet


def tests_of(cluster: str, namespace: str) -> list[KeptTest]:
    """The tests of a namespace by name; one query."""
    tests = KeptTest.objects.filter(namespace__cluster__name=cluster, namespace__name=namespace)
    return list(tests.select_related("namespace__cluster").order_by("name"))


def judged(tests: Iterable[KeptTest], policies: PolicySet) -> list[JudgedTest]:
    """Judge tests under these policies, red ones first; no query."""
    results = [judge_test(each.value, policies) for each in tests]
    return sorted(results, key=lambda each: (each.passes, each.test.name))


def run_tests(
    cluster: str, namespace: str, *, unsaved: Sequence[Mapping[str, Any]] = ()
) -> list[JudgedTest]:
    """Judge the tests of a namespace under its stored policies with unsaved ones in their place.

    Nine queries, no write. Raises ``DecodeError`` for an unsaved policy that cannot be read.
    """
    tests = tests_of(cluster, namespace)
    if not tests:
        return []
    return judged(tests, with_unsaved(snapshot.load(cluster, namespace), unsaved))
