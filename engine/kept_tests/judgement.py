"""``judge_test`` under the policies of its namespace: JudgedTest, the differences in words."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from engine.chain import admit
from engine.errors import DecodeError
from engine.kept_tests.definition import ExpectedAnswer
from engine.kept_tests.storable import plain
from engine.quantity import ZERO
from engine.request import Phase
from engine.request_json import complete_request
from engine.resource_quota import is_tracked
from engine.wire import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.decision import Decision
    from engine.kept_tests.definition import KeptTest
    from engine.policy import PolicySet, ResourceQuota
    from engine.resource_list import ResourceList

Aspect = Literal["verdict", "reasons", "patch", "object"]
_SHOWN: Final = 300
"""Characters of an operation in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDifference:
    """What differs from the expected answer: the aspect, for machines, and a sentence."""

    aspect: Aspect
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTest:
    """A test, the decision about its object (None: it cannot be read), and the differences."""

    test: KeptTest
    decision: Decision | None
    differences: tuple[AnswerDifference, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether the answer is the expected one; otherwise the test is red."""
        return not self.differences


def judge_test(test: KeptTest, policies: PolicySet) -> JudgedTest:
    """Decide about the object of a test as an API server would, and compare the answers."""
    try:
        request = complete_request(
            {
                "object": test.object,
                "oldObject": test.old_object,
                "operation": test.operation.value,
                "subResource": test.sub_resource,
                "namespace": policies.namespace or test.namespace,
                "userInfo": {"username": test.user},
            }
        )
    except DecodeError as error:
        unread = AnswerDifference(aspect="object", message=f"it cannot be read: {error.detail}")
        return JudgedTest(test=test, decision=None, differences=(unread,))
    decision = admit(request, with_used(policies, test.used), phase=Phase.BOTH)
    found = tuple(_differences(test.expected, decision))
    return JudgedTest(test=test, decision=decision, differences=found)


def with_used(policies: PolicySet, used: Mapping[str, ResourceList]) -> PolicySet:
    """The policies with quotas that use these amounts, and nothing else."""
    quotas = tuple(_using(quota, used.get(quota.name, {})) for quota in policies.resource_quotas)
    return dataclasses.replace(policies, resource_quotas=quotas)


def _using(quota: ResourceQuota, used: ResourceList) -> ResourceQuota:
    hard = quota.spec_hard or quota.hard
    amounts = {name: used.get(name, ZERO) for name in hard if is_tracked(name)}
    return dataclasses.replace(quota, hard=hard, used=amounts)


def answer_of(decision: Decision) -> ExpectedAnswer:
    """The answer of a decision as one to expect, with its change."""
    return ExpectedAnswer(
        allowed=decision.allowed,
        reasons=tuple(sorted(_reasons(decision))),
        patch=None if not decision.allowed else tuple(_operations(decision)),
    )


def _operations(decision: Decision) -> Iterator[dict[str, Any]]:
    for operation in decision.patch:
        made: dict[str, Any] = plain(operation.to_json())
        yield made


def _reasons(decision: Decision) -> set[str]:
    listed = {violation.reason.value for violation in decision.violations}
    return listed | {reason.value for reason in decision.more_violations}


def _differences(expected: ExpectedAnswer, decision: Decision) -> Iterator[AnswerDifference]:
    found = _reasons(decision)
    if expected.allowed != decision.allowed:
        message = (
            f"it is expected to be allowed, but is denied: {decision.message}"
            if expected.allowed
            else f"it is expected to be denied{_for(expected.reasons)}, but is allowed"
        )
        yield AnswerDifference(aspect="verdict", message=message)
    elif expected.reasons and found != set(expected.reasons):
        message = f"it is expected to be denied{_for(expected.reasons)}, but is denied{_for(found)}"
        yield AnswerDifference(aspect="reasons", message=message)
    if expected.patch is not None and expected.allowed and decision.allowed:
        yield from _patch_differences(expected.patch, decision)


def _for(reasons: Iterable[str]) -> str:
    given = ", ".join(sorted(reasons))
    return f" for {given}" if given else ""


def _patch_differences(
    wanted: Iterable[Mapping[str, Any]], decision: Decision
) -> Iterator[AnswerDifference]:
    """Operations by their text: their order may change with the order of policies."""
    expected = Counter(map(_text_of, wanted))
    found = Counter(map(_text_of, _operations(decision)))
    missing, surplus = _by_path(expected - found), _by_path(found - expected)
    for path in [*missing, *(each for each in surplus if each not in missing)]:
        yield AnswerDifference(
            aspect="patch", message=_words_of(path, missing.get(path), surplus.get(path))
        )


def _words_of(path: str, missing: list[str] | None, surplus: list[str] | None) -> str:
    """What differs at one path of the object."""
    wanted, made = (_short(", ".join(each)) for each in (missing or (), surplus or ()))
    if not surplus:
        return f"{path} is expected to change and does not: {wanted}"
    if not missing:
        return f"{path} changes and is not expected to: {made}"
    return f"{path} is expected to change otherwise: {wanted}; found: {made}"


def _by_path(operations: Counter[tuple[str, str]]) -> dict[str, list[str]]:
    """The operations in words, by the path that they change."""
    found: dict[str, list[str]] = {}
    for path, words in operations.elements():
        found.setdefault(path, []).append(words)
    return found


def _text_of(operation: Mapping[str, Any]) -> tuple[str, str]:
    """The path of an operation, and what it does there."""
    word, path = operation["op"], operation["path"]
    if word == "remove":
        return path, word
    return path, f"{word} {dumps(_sorted(operation.get('value')))}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _sorted(value: Any) -> Any:
    """Maps in the order of their names; values are kept ones, which nest a few levels only."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
