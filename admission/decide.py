"""The order of one decision: lock, read, think, charge, record; all of it or nothing.

Everything happens in one transaction, so that a charge, its record and the answer stand or fall
together. No rule and no HTTP here.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction

from admission import audit
from admission.redaction import is_unstorable
from policies import policy_set, usage
from policies.engine import chain
from policies.engine.decision import Decision, Reason, Violation
from policies.engine.policy import PolicySet
from policies.engine.request import Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.engine.policy import PolicyRef
    from policies.engine.request import AdmissionRequest

DEFAULT_BUDGET: Final = 9.0  # seconds; an API server waits 10 unless told otherwise
SHORTEST_WAIT: Final = 0.05
SQLITE_TIMEOUT: Final = 5.0  # what Python's sqlite3 waits unless told otherwise
LONGEST_NAME: Final = 317  # characters: a resource with its group
LONGEST_UID: Final = 128


class OverBudgetError(RuntimeError):
    """The caller is about to give up: nothing was charged, nothing recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who asks, in which phase, since when (``time.monotonic_ns()``) and for how long (seconds)."""

    cluster: str
    phase: Phase
    client: str
    started: int
    budget: float = DEFAULT_BUDGET

    @property
    def spent(self) -> float:
        """Seconds since the call arrived."""
        return (time.monotonic_ns() - self.started) / 1e9

    @property
    def remaining(self) -> float:
        """Seconds left of the budget; negative when it is spent."""
        return self.budget - self.spent

    def check(self) -> None:
        """Raise ``OverBudgetError`` when the budget is spent."""
        if self.remaining <= 0:
            raise OverBudgetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A decision that is on record under this id: it may be answered."""

    id: str
    decision: Decision


def decide(request: AdmissionRequest, *, call: Call) -> Recorded:
    """Judge a request, charge its quotas and write the record.

    Only a validating call that is no dry run is charged; the others are only recorded.

    Raises:
        OverBudgetError: when the caller's time is up.
        DatabaseError: when the record cannot be written. Nothing is kept in either case.
    """
    charged = call.phase is Phase.VALIDATE and not request.dry_run
    unfit = _unfit(request)
    with _all_or_nothing(call):
        if unfit:
            return _record(unfit, request=request, call=call, asked=(PolicySet(), 0))
        policies, revision = _snapshot(request, call=call, locked=charged)
        decision = _judge(request, policies=policies, call=call)
        if charged and decision.allowed:
            usage.charge(call.cluster, request=request, charges=decision.charges)
        return _record(decision, request=request, call=call, asked=(policies, revision))


def _snapshot(request: AdmissionRequest, *, call: Call, locked: bool) -> tuple[PolicySet, int]:
    """Read the policies, and the revision of their cluster that all of them belong to.

    Several queries see several moments: lock and read again if somebody wrote in between, so that
    no quota is charged that was made after the locks were taken.
    """
    revision = policy_set.revision(call.cluster)
    while True:
        if locked:
            usage.lock_quotas(call.cluster, request.namespace)
        policies = policy_set.load(call.cluster, request.namespace)
        revision_after = policy_set.revision(call.cluster)
        if revision_after == revision:
            return policies, revision
        revision = revision_after
        call.check()


def _judge(request: AdmissionRequest, *, policies: PolicySet, call: Call) -> Decision:
    """Judge on what is used without this very object, so that a retry is judged like the first."""
    now = _now()
    if call.phase is Phase.VALIDATE:
        policies = usage.net_of_own_charge(policies, request, now=now)
    decision = chain.admit(request, policies, phase=call.phase, now=now)
    call.check()
    return decision


def _unfit(request: AdmissionRequest) -> Decision | None:
    """Refuse names that no API server makes and no ledger can hold."""
    resource, uid = usage.object_key(request)
    names = {
        "namespace": request.namespace,
        "name": request.display_name,
        "resource": resource,
        "object.metadata.uid": uid,
    }
    for field, name in names.items():
        if len(name) > LONGEST_NAME or is_unstorable(name):
            return _unfit_name(f"request.{field}")
    return _unfit_name("request.object.metadata.uid") if len(uid) > LONGEST_UID else None


def _unfit_name(field: str) -> Decision:
    message = f"{field}: is not a name that an API server makes"
    violation = Violation(reason=Reason.UNREADABLE_OBJECT, field=field, message=message)
    return Decision(
        allowed=False, code=422, reason="Invalid", message=message, violations=(violation,)
    )


def refuse(decision: Decision, *, uid: str, call: Call) -> Recorded:
    """Record the denial of a review that could not be read. Raises as ``decide`` does."""
    with _all_or_nothing(call):
        decision_id = audit.new_decision_id()
        circumstances = _circumstances(call, request_uid=uid)
        audit.record(decision, decision_id=decision_id, request=None, circumstances=circumstances)
        call.check()
    return Recorded(id=decision_id, decision=decision)


def _record(
    decision: Decision, *, request: AdmissionRequest, call: Call, asked: tuple[PolicySet, int]
) -> Recorded:
    decision_id = audit.new_decision_id()
    circumstances = _circumstances(call, asked=asked)
    audit.record(decision, decision_id=decision_id, request=request, circumstances=circumstances)
    call.check()
    return Recorded(id=decision_id, decision=decision)


def _circumstances(
    call: Call, *, request_uid: str = "", asked: tuple[PolicySet, int] | None = None
) -> audit.Circumstances:
    policies, revision = asked or (PolicySet(), 0)
    return audit.Circumstances(
        cluster=call.cluster,
        phase=call.phase,
        client=call.client,
        started=call.started,
        request_uid=request_uid,
        policy_revision=revision,
        policies=_refs(policies),
    )


def _refs(policies: PolicySet) -> tuple[PolicyRef, ...]:
    return (
        *(policy.ref for policy in policies.limit_ranges),
        *(policy.ref for policy in policies.metadata_policies),
        *(policy.ref for policy in policies.resource_quotas),
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def _all_or_nothing(call: Call) -> Iterator[None]:
    """One transaction that waits for locks no longer than the caller waits for us."""
    call.check()
    with _bounded_wait(call.remaining), transaction.atomic():
        if connection.vendor == "postgresql":
            _bound_statements(call.remaining)
        call.check()
        yield


@contextmanager
def _bounded_wait(seconds: float) -> Iterator[None]:
    """On SQLite the transaction begins with the write lock: bound the wait for it.

    The connection serves others of its thread afterwards: they wait as the settings say.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    usual = connection.settings_dict["OPTIONS"].get("timeout", SQLITE_TIMEOUT)
    _wait_for_lock(seconds)
    try:
        yield
    finally:
        _wait_for_lock(usual)


def _wait_for_lock(seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {_milliseconds(seconds)}")


def _bound_statements(seconds: float) -> None:
    with connection.cursor() as cursor:
        for setting in ("lock_timeout", "statement_timeout"):
            cursor.execute(
                "SELECT set_config(%s, %s, true)", [setting, f"{_milliseconds(seconds)}ms"]
            )


def _milliseconds(seconds: float) -> int:
    return int(max(seconds, SHORTEST_WAIT) * 1000)
