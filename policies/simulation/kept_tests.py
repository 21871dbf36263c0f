"""Kept tests of a namespace judged under its policies, stored or with a draft: red ones first.

``kept_answer`` makes a test of an object and the answer that policies give to it.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final

from engine.chain import admit
from engine.errors import DecodeError
from engine.kept_tests import (
    ExpectedAnswer,
    answer_of,
    decode_kept_test,
    encode_kept_test,
    judge_test,
    plain,
)
from engine.kept_tests import KeptTest as EngineTest
from engine.request import Phase
from policies import snapshot
from policies.models import KeptTest
from policies.simulation.simulate import request_for, with_unsaved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.kept_tests import JudgedTest
    from engine.policy import PolicySet

_NO_NAME: Final = re.compile("[^a-z0-9]+")
_LONGEST_PART: Final = 60


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


def kept_answer(policies: PolicySet, obj: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a test that expects what these policies answer; its name is a suggestion.

    Where the answer depends on what quotas use, the test names their used amounts. Raises
    ``DecodeError`` for an object that cannot be read, or is too large to be kept.
    """
    asked = EngineTest(
        name="",
        namespace=policies.namespace,
        object=plain(obj),
        expected=ExpectedAnswer(allowed=True),
    )
    test = decode_kept_test(encode_kept_test(asked))
    request = request_for(test.object, namespace=policies.namespace)
    found = answer_of(admit(request, policies, phase=Phase.BOTH))
    if _answer(test, policies) != found:
        used = {quota.name: quota.used for quota in policies.resource_quotas if quota.used}
        test = dataclasses.replace(test, used=used)
    expected = _answer(test, policies)
    name = f"{_plain_name(test)}-is-{'allowed' if expected.allowed else 'denied'}"
    return encode_kept_test(dataclasses.replace(test, expected=expected, name=name))


def _plain_name(test: EngineTest) -> str:
    """The name of its object, or its kind, as a part of another name."""
    title = test.object_title.partition(" ")[2].removesuffix("*")
    return _NO_NAME.sub("-", title.lower())[:_LONGEST_PART].strip("-") or "object"


def _answer(test: EngineTest, policies: PolicySet) -> ExpectedAnswer:
    decision = judge_test(test, policies).decision
    if decision is None:
        raise DecodeError("object", "cannot be read")
    return answer_of(decision)


def with_answer(test: EngineTest, policies: PolicySet) -> EngineTest:
    """The test with the answer of these policies as the expected one; raises ``DecodeError``."""
    return dataclasses.replace(test, expected=_answer(test, policies))
