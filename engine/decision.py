"""``Decision``, ``Violation``, ``Step``, ``Charge`` as values; codes: ``Reason``, ``Outcome``."""

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
    """Stable codes of the causes for which a request is refused or observed."""

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
    NAMESPACE_NOT_KNOWN_YET = "NamespaceNotKnownYet"
    BAD_SCOPE_SELECTOR = "BadScopeSelector"
    INVALID_OBJECT = "InvalidObject"
    UNREADABLE_OBJECT = "UnreadableObject"
    REVIEW_TOO_LONG = "ReviewTooLong"
    CANARY = "Canary"


class Outcome(StrEnum):
    """The result of one step of the chain."""

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
    """One rule that the object breaks.

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
    """One entry of the trace: a policy (and rule) that was evaluated, and the result."""

    name: str
    outcome: Outcome
    policy: PolicyRef | None = None
    rule: int | None = None
    detail: str = ""
    numbers: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge(Remembering):
    """The cost of admitting the object to one quota.

    ``delta`` is the growth of ``used``. ``amounts`` is the whole usage of the object under the
    quota's names; the ledger stores it absolutely, so that charging twice has no effect.
    """

    quota: PolicyRef
    delta: ResourceList
    amounts: ResourceList


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to one request: recorded as it is, rendered as it is.

    ``code`` and ``reason`` are those of the Status (403 ``Forbidden``, 422 ``Invalid``, …); an
    allowed request has 200 and an empty reason. ``violations`` refuse; ``observed`` are those of
    policies in ``warn`` and ``audit`` mode. Both list the first ones and count the others by
    reason. ``causes`` are field and text of every error in an invalid object, up to the length of a
    message. ``object`` is the object after mutation. ``used`` maps each quota's name to its used
    amounts after this request. ``details`` are those of a denial's Status (``name``, ``group``,
    ``kind``). ``patch`` fits the object that an API server sends, after its defaulting.
    ``authority`` is who enforces ranges and quotas; where the API server does, the portal's
    violations of them are in ``observed``, too.
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
