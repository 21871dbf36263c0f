"""The decision as a value: verdict, violations, trace, patch and charges."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.cache import Remembering
from engine.policy import Authority

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.patch import PatchOperation
    from engine.policy import PolicyRef
    from engine.resource_list import ResourceList


class Reason(StrEnum):
    """Why a request was refused or marked: stable codes, one for each rule."""

    MIN_CONSTRAINT = "MinConstraint"
    MAX_CONSTRAINT = "MaxConstraint"
    RATIO_CONSTRAINT = "MaxLimitRequestRatioConstraint"
    REJECTED_BY_RULE = "RejectedByRule"
    ANNOTATIONS_TOO_LONG = "AnnotationsTooLong"
    MUST_SPECIFY = "MustSpecify"
    STATUS_UNKNOWN = "StatusUnknown"
    NEGATIVE_USAGE = "NegativeUsage"
    NO_PREVIOUS_USAGE = "NoPreviousUsage"
    INSUFFICIENT_QUOTA = "InsufficientQuota"
    UNCOVERED_SCOPE = "UncoveredScope"
    EXCEEDED_QUOTA = "ExceededQuota"
    TOO_MANY_UNCONFIRMED = "TooManyUnconfirmed"
    BAD_SCOPE_SELECTOR = "BadScopeSelector"
    INVALID_OBJECT = "InvalidObject"
    UNREADABLE_OBJECT = "UnreadableObject"
    REVIEW_TOO_LONG = "ReviewTooLong"
    CANARY = "Canary"


class Outcome(StrEnum):
    """What one step of the chain did."""

    SKIPPED = "skipped"
    NOT_MATCHED = "not-matched"
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    PASSED = "passed"
    VIOLATED = "violated"
    CHARGED = "charged"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One rule that did not hold.

    ``message`` is Kubernetes' text without the ``<resource> "<name>" is forbidden: `` prefix.
    ``field`` points into the judged object. ``numbers`` are the texts that were compared, by role:
    ``enforced``, ``request``, ``limit``, ``ratio``, ``requested``, ``used``, ``hard`` and
    ``resource``.
    """

    reason: Reason
    field: str
    message: str
    policy: PolicyRef | None = None
    rule: int | None = None
    numbers: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Remembering):
    """One entry of the trace: which policy (and rule) was asked, and what came of it."""

    name: str
    outcome: Outcome
    policy: PolicyRef | None = None
    rule: int | None = None
    detail: str = ""
    numbers: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge(Remembering):
    """What admitting the object costs one quota.

    ``delta`` is what ``used`` grows by; ``amounts`` is the object's whole usage, cut to the
    quota's own names: stored absolutely, so that a replay charges nothing.
    """

    quota: PolicyRef
    delta: ResourceList
    amounts: ResourceList


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to one request: recorded as it is, rendered as it is.

    ``code`` and ``reason`` are those of the Status (403 ``Forbidden``, 422 ``Invalid``, …); for an
    allowed request 200 and empty. ``violations`` are those that refused; those of policies in
    ``warn`` and ``audit`` mode are in ``observed``: the first ones, and by reason how many more
    there are. ``causes`` are field and text of all that is wrong with an invalid object, up to
    the length of a message. ``object`` is the object after mutation.
    ``used`` maps quota name to what it would have used after this request. ``details`` are those
    of the Status (``name``, ``group``, ``kind``), for denied requests. ``patch`` is for the
    object as an API server sends it, after its defaulting. ``authority`` says who enforces ranges
    and quotas; where that is not the portal, what it found about them is in ``observed``, too.
    """

    allowed: bool
    code: int = 200
    reason: str = ""
    message: str = ""
    violations: tuple[Violation, ...] = ()
    observed: tuple[Violation, ...] = ()
    more_violations: Mapping[Reason, int] = dataclasses.field(default_factory=dict)
    more_observed: Mapping[Reason, int] = dataclasses.field(default_factory=dict)
    causes: tuple[tuple[str, str], ...] = ()
    trace: tuple[Step, ...] = ()
    patch: tuple[PatchOperation, ...] = ()
    warnings: tuple[str, ...] = ()
    charges: tuple[Charge, ...] = ()
    details: Mapping[str, str] = dataclasses.field(default_factory=dict)
    object: Mapping[str, Any] | None = None
    used: Mapping[str, ResourceList] = dataclasses.field(default_factory=dict)
    authority: Authority = Authority.PORTAL
