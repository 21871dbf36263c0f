"""``ReplayJudge`` of past decisions under base and draft, those alike once; AnswerChanges."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from admission.record.redaction import restore
from admission.replay.alike import cut_down
from admission.replay.policies import read_annotations, without_amounts
from admission.replay.recorded import Unreplayed, read_stored
from engine.cache import Kept
from engine.chain import prepare
from engine.decision import Outcome, Reason
from engine.errors import DecodeError
from engine.limit_range import ANNOTATION
from engine.metadata_policy import QOS_ANNOTATION
from engine.request import Phase
from engine.request_json import build_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from admission.replay.policies import ReplayPolicies
    from admission.replay.recorded import PastDecision, StoredRequest
    from engine.decision import Decision, Violation
    from engine.policy import PolicyRef, PolicySet
    from engine.request import AdmissionRequest

OF_THE_MOMENT: Final = frozenset(
    {
        Reason.EXCEEDED_QUOTA,
        Reason.STATUS_UNKNOWN,
        Reason.TOO_MANY_UNCONFIRMED,
        Reason.NAMESPACE_NOT_KNOWN_YET,
        Reason.REVIEW_TOO_LONG,
    }
)
"""Reasons that follow from other objects or from the machine at that moment, not from policies."""
ALWAYS_SET: Final = frozenset({ANNOTATION, QOS_ANNOTATION})
_KEPT: Final = 60_000
_ROOM: Final = 24 * 1024 * 1024
_BYTES: Final = 160  # estimate of an entry, without its texts


class ChangeKind(StrEnum):
    """How the draft's answer differs from the base's."""

    TO_DENIED = "to_denied"
    TO_ALLOWED = "to_allowed"
    PATCH = "patch"
    NEW_WARNING = "new_warning"
    VANISHED_WARNING = "vanished_warning"


class NamelessFinding(NamedTuple):
    """A violation without the names of its object."""

    reason: str
    field: str
    message: str
    policy: str


class NamelessAnswer(NamedTuple):
    """An answer without the names of its object.

    ``setters`` are the policies that changed the object; ``more`` are further reasons.
    """

    allowed: bool
    findings: tuple[NamelessFinding, ...]
    observed: tuple[NamelessFinding, ...]
    more: tuple[str, ...]
    patch: tuple[str, ...]
    setters: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def reasons(self) -> frozenset[str]:
        """The reasons of all that was found, as the record has them."""
        return frozenset([*(each.reason for each in (*self.findings, *self.observed)), *self.more])


class AnswerChange(NamedTuple):
    """One way in which the answers differ: whose reasons and policies led to it, and a text."""

    kind: ChangeKind
    reasons: tuple[str, ...]
    policies: tuple[str, ...]
    text: str


class Compared(NamedTuple):
    """What the base answers, and how the draft differs; empty ``changes``: not at all."""

    allowed: bool
    reasons: frozenset[str]
    changes: tuple[AnswerChange, ...]


class ReplayJudge:
    """Compares two sets of policies on recorded decisions; ``judged`` counts what was not alike."""

    def __init__(self, base: ReplayPolicies, draft: ReplayPolicies) -> None:
        self._base, self._draft = base, draft
        self._pairs: dict[str, tuple[PolicySet, PolicySet, frozenset[str]]] = {}
        self._missed: tuple[StoredRequest, str, str, int] | None = None
        self._recall = Kept(self._compare_missed, _weigh, most=_KEPT, room=_ROOM)
        self.judged = 0

    def compare(self, recorded: PastDecision) -> Compared | Unreplayed:
        """Compare both answers to one recorded request, or tell why there are none."""
        if recorded.namespace in self._base.unreadable:
            return Unreplayed.POLICIES_UNREADABLE
        keys = self._pair(recorded.namespace)[2]
        if recorded.phase == Phase.MUTATE:
            keys |= ALWAYS_SET
        stored = read_stored(recorded, keys)
        if isinstance(stored, Unreplayed):
            return stored
        moment = int(recorded.created.timestamp())
        key = cut_down(stored, phase=recorded.phase, moment=moment)
        self._missed = stored, recorded.namespace, recorded.phase, moment
        try:
            return self._recall(key)
        except DecodeError:
            return Unreplayed.UNREADABLE

    def _pair(self, namespace: str) -> tuple[PolicySet, PolicySet, frozenset[str]]:
        pair = self._pairs.get(namespace)
        if pair is None:
            base, draft = self._base.of(namespace), self._draft.of(namespace)
            keys = read_annotations(base) | read_annotations(draft)
            judged_base = without_amounts(base)
            # The very same set: the request is judged once.
            is_same = base is draft or base == draft
            judged_draft = judged_base if is_same else without_amounts(draft)
            pair = self._pairs[namespace] = (judged_base, judged_draft, keys)
        return pair

    def _compare_missed(self, _key: bytes) -> Compared:
        assert self._missed is not None  # noqa: S101 - set by ``compare``, the only caller
        stored, namespace, phase, moment = self._missed
        base, draft, _ = self._pair(namespace)
        request = build_request(restore(stored))
        self.judged += 1
        before = outcome_of(request, base, phase=phase, now=moment)
        if draft is base:
            return Compared(before.allowed, before.reasons, ())
        after = outcome_of(request, draft, phase=phase, now=moment)
        return Compared(before.allowed, before.reasons, changes_of(before, after))


def _weigh(_key: bytes, compared: Compared) -> int:
    return _BYTES + sum(_BYTES + len(change.text) for change in compared.changes)


def outcome_of(
    request: AdmissionRequest, policies: PolicySet, *, phase: str, now: int
) -> NamelessAnswer:
    """Decide a request, and leave out what names the object."""
    return reduced(decided(request, policies, phase=phase, now=now))


def decided(request: AdmissionRequest, policies: PolicySet, *, phase: str, now: int) -> Decision:
    """Decide a request as it was asked: in one call of two."""
    return prepare(request, policies, phase=Phase(phase), now=now).decide()


def reduced(decision: Decision) -> NamelessAnswer:
    """The parts of a decision that are the same for objects alike."""
    return NamelessAnswer(
        allowed=decision.allowed,
        findings=_findings(decision.violations),
        observed=_findings(decision.observed),
        more=tuple(
            reason.value for more in (decision.more_violations, decision.more_observed)
            for reason in more
        ),
        patch=tuple(str(each.to_json()) for each in decision.patch),
        setters=tuple(
            dict.fromkeys(
                name_of(step.policy)
                for step in decision.trace
                if step.outcome is Outcome.CHANGED and step.policy
            )
        ),
        warnings=decision.warnings,
    )  # fmt: skip


def name_of(policy: PolicyRef | None) -> str:
    """A policy as ``Kind/namespace/name``: revisions differ by nature."""
    return f"{policy.kind}/{policy.namespace}/{policy.name}" if policy else ""


def _findings(violations: Iterable[Violation]) -> tuple[NamelessFinding, ...]:
    return tuple(
        NamelessFinding(each.reason.value, each.field, each.message, name_of(each.policy))
        for each in violations
    )


def changes_of(before: NamelessAnswer, after: NamelessAnswer) -> tuple[AnswerChange, ...]:
    """How an answer differs from another one; a refusal has no patch to compare."""
    if before == after:
        return ()
    changes: list[AnswerChange] = []
    if before.allowed and not after.allowed:
        changes.append(_flip(ChangeKind.TO_DENIED, after.findings))
    elif after.allowed and not before.allowed:
        changes.append(_flip(ChangeKind.TO_ALLOWED, before.findings))
    elif before.allowed and before.patch != after.patch:
        setters = [each for each in before.setters if each not in after.setters]
        setters += [each for each in after.setters if each not in before.setters]
        policies = tuple(setters) or after.setters
        operations = [each for each in after.patch if each not in before.patch]
        operations += [each for each in before.patch if each not in after.patch]
        changes.append(
            AnswerChange(ChangeKind.PATCH, (), policies, operations[0] if operations else "")
        )
    changes += _warnings(ChangeKind.NEW_WARNING, before, after)
    changes += _warnings(ChangeKind.VANISHED_WARNING, after, before)
    return tuple(changes)


def _flip(kind: ChangeKind, findings: tuple[NamelessFinding, ...]) -> AnswerChange:
    text = findings[0].message if findings else ""
    return _change(kind, findings, text)


def _warnings(
    kind: ChangeKind, without: NamelessAnswer, having: NamelessAnswer
) -> list[AnswerChange]:
    texts = [each for each in having.warnings if each not in without.warnings]
    if not texts:
        return []
    found = tuple(each for each in having.observed if each not in without.observed)
    return [_change(kind, found, texts[0])]


def _change(kind: ChangeKind, findings: tuple[NamelessFinding, ...], text: str) -> AnswerChange:
    return AnswerChange(
        kind=kind,
        reasons=tuple(dict.fromkeys(each.reason for each in findings)),
        policies=tuple(dict.fromkeys(each.policy for each in findings if each.policy)),
        text=text,
    )
