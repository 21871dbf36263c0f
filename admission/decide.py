"""A Call's request prepared on the snapshot, submitted, decided, charged in the book; unfit names.

A request is prepared by its own thread, on the process's snapshot of the policies. What depends on
used amounts is decided by the writer, on locked rows, in the transaction that charges and records
it, so that charge, record and answer stand or fall together. No rule and no HTTP here.
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from admission import hints, metrics, writer
from admission.alike import ReadReview
from admission.record import write
from admission.record.redaction import is_unstorable
from admission.writer import OverBudgetError, PostponedError, UnavailableError
from admission.writer.pending_decision import BatchRead, Decided, FollowedWhen, Needs
from engine import chain
from engine.bounds import LONGEST_REVIEW, TooLongError
from engine.decision import Decision, Reason, Violation
from engine.policy import Authority, PolicySet
from engine.request import Operation, Phase
from policies import ledger, snapshot
from policies.ledger.book import Book
from policies.snapshot import Authentication

if TYPE_CHECKING:
    from collections.abc import Mapping

    from admission.writer.pending_decision import Stamp
    from engine.chain import Prepared
    from engine.request import AdmissionRequest
    from policies.snapshot import ClusterPolicies, QuotaKey, Snapshot

__all__ = [
    "Call",
    "OverBudgetError",
    "PostponedError",
    "RecordedDecision",
    "UnavailableError",
    "decide",
    "decide_ahead",
    "prepare",
    "prepare_after_pause",
    "prepare_refusal",
    "submit_and_wait",
]

DEFAULT_BUDGET: Final = 9.0  # seconds; an API server waits 10 unless configured otherwise
PATIENCE: Final = 1.0
"""Seconds that must be left of the budget where a refusal is postponed."""
LONGEST_NAME: Final = 317  # characters: a resource with its group
LONGEST_UID: Final = 128


class UnknownCallerError(RuntimeError):
    """The credential was withdrawn, or its cluster removed, after the call was authenticated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The caller of one review: cluster, phase, time of arrival, and budget in seconds.

    ``started`` is a ``time.monotonic_ns()``. ``secret`` is the credential that authenticated the
    cluster; it is stored nowhere.
    """

    cluster: str
    phase: Phase
    client: str
    started: int
    secret: str = field(default="", repr=False)
    budget: float = DEFAULT_BUDGET

    @property
    def spent(self) -> float:
        """Seconds since the call arrived."""
        return (time.monotonic_ns() - self.started) / 1e9

    @property
    def deadline(self) -> float:
        """The end of the budget, as ``time.monotonic()`` counts."""
        return self.started / 1e9 + self.budget


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision:
    """A decision that is on record under this id, so it may be answered."""

    id: str
    decision: Decision


def decide(request: AdmissionRequest, *, call: Call) -> RecordedDecision:
    """Decide a request, charge its quotas and write the record.

    Only a validating call that is no dry run is charged; the others are only recorded.

    Raises:
        OverBudgetError: when the caller's time is up.
        UnavailableError: when the record cannot be written. Nothing is kept in either case.
        UnknownCallerError: when the credential was withdrawn in between.
    """
    return submit_and_wait(prepare(ReadReview(request, write.columns_of(request)), call=call))


def prepare(
    review: ReadReview, *, call: Call, may_postpone: bool = False
) -> writer.PendingDecision:
    """Decide all but the used amounts, which the writer reads. Raises as ``decide``.

    ``may_postpone``: a refusal for want of room may instead fail with PostponedError, where a
    follower may know of more room in a moment; the caller then pauses and asks again.
    """
    return _prepared_on_snapshot(_PendingReview(review, call=call, may_postpone=may_postpone))


def prepare_after_pause(postponed: writer.PendingDecision, *, is_last: bool) -> _PendingReview:
    """Prepare a postponed review again; the last time it is decided by what is known then."""
    if not isinstance(postponed, _PendingReview):
        raise TypeError("only a review can be postponed")
    again = _PendingReview(postponed.review, call=postponed.call, may_postpone=not is_last)
    return _prepared_on_snapshot(again)


def decide_ahead(pending: writer.PendingDecision) -> RecordedDecision | None:
    """The final answer to a mutating call that is allowed by what was prepared alone, or None."""
    return pending.decide_ahead() if isinstance(pending, _PendingReview) else None


def prepare_refusal(decision: Decision, *, uid: str, call: Call) -> writer.PendingDecision:
    """Prepare the denial of a review that could not be read, to be recorded as any other."""
    return _prepared_on_snapshot(_PendingReview(None, call=call, refusal=decision, uid=uid))


def _prepared_on_snapshot(pending: _PendingReview) -> _PendingReview:
    pending.prepare(snapshot.current())
    return pending


def submit_and_wait(pending: writer.PendingDecision) -> RecordedDecision:
    """Submit a prepared review to the writer, and wait in this thread. Raises as ``decide``."""
    writer.submit(pending)
    recorded: RecordedDecision = pending.wait(writer.is_stuck)
    return recorded


class _PendingReview(writer.PendingDecision):
    """One review on its way to the record."""

    def __init__(
        self,
        review: ReadReview | None,
        *,
        call: Call,
        refusal: Decision | None = None,
        uid: str = "",
        may_postpone: bool = False,
    ) -> None:
        # All that depends on no used amount is done here, in the caller's thread: the writer is one
        # for all.
        super().__init__(id=write.new_decision_id(), deadline=call.deadline)
        self.review = review
        self.request = request = review.request if review else None
        self.call = call
        self.may_postpone = may_postpone
        self.columns = review.columns if review else write.columns_of(None, request_uid=uid)
        self._ledger_object = ledger.object_key(request) if request else ("", "")
        self.refusal = refusal or (_unfit(request, *self._ledger_object) if request else None)
        self.cluster: ClusterPolicies | None = None
        self.policies = PolicySet()
        self.prepared: Prepared | None = None
        self.quotas: Mapping[str, QuotaKey] = {}
        self.needs = Needs()
        self._decided: Decided | None = None  # ahead of the batch

    def prepare(self, policies: Snapshot) -> None:
        """Decide all but the used amounts; a second time, authenticate the caller again."""
        if self._decided is not None:
            return  # answered already
        call, request = self.call, self.request
        is_again = self.cluster is not None and call.secret
        if is_again and policies.authenticate(call.cluster, call.secret) is not Authentication.OK:
            raise UnknownCallerError
        self.cluster = policies.clusters.get(call.cluster)
        if self.cluster is None:
            raise UnknownCallerError
        if self.refusal is None and request is not None:
            self.policies = self.cluster.policy_set(request.namespace)
            self.prepared = chain.prepare(
                patient(request),
                self.policies,
                phase=call.phase,
                now=int(time.time()),
                alike=self.review and self.review.alike,
            )
            self.quotas = self.cluster.quota_keys(request.namespace)
        self.needs = self._needs(self.cluster)

    def _needs(self, cluster: ClusterPolicies) -> Needs:
        request, prepared = self.request, self.prepared
        object_key = (cluster.id, *self._ledger_object)
        if request is None or prepared is None:
            return Needs(object_key=object_key)
        quota_ids = tuple([self.quotas[name].id for name in prepared.quotas])
        grown = [self.quotas[name].id for name, before in prepared.before.items() if before]
        # Where the API server enforces, the ledger is charged to show usage, and denies nothing.
        is_capped = quota_ids and self._may_charge and cluster.authority is Authority.PORTAL
        followed = FollowedWhen.LATELY if self.may_postpone and quota_ids else None
        if self._may_get_policies(cluster, request):
            followed = FollowedWhen.NOW
        return Needs(
            quota_ids=quota_ids,
            object_key=object_key,
            grown_ids=tuple(grown),
            namespace=request.namespace,
            most_waiting=cluster.unconfirmed_limit if is_capped else 0,
            followed=followed,
        )

    @property
    def _may_charge(self) -> bool:
        """Whether an allowed request is charged."""
        is_real = self.request is not None and not self.request.dry_run
        return is_real and self.call.phase is Phase.VALIDATE

    @property
    def stamp(self) -> Stamp | None:
        """The cluster and policy revision that it was prepared on."""
        prepared_on = None if self._decided else self.cluster
        return (prepared_on.id, prepared_on.uid, prepared_on.revision) if prepared_on else None

    def decide_ahead(self) -> RecordedDecision | None:
        """Decide a mutating call for good, if it is allowed by what was prepared alone.

        Its row holds just this answer, whatever is known by the time that it is written.
        """
        needs = self.needs
        if self.call.phase is not Phase.MUTATE or self.prepared is None:
            return None
        if needs.quota_ids or needs.followed is not None:
            return None
        decided = self.decide(BatchRead(Book((), ())))
        recorded: RecordedDecision = decided.answer
        if not recorded.decision.allowed:
            return None
        self._decided, self.deadline = decided, math.inf
        return recorded

    def decide(self, read: BatchRead) -> Decided:
        """Decide on the amounts that all other objects use, so that a retry changes nothing."""
        if self._decided is not None:
            return self._decided
        decision = self._decision(read)
        circumstances = write.Circumstances(
            cluster=self.call.cluster,
            phase=self.call.phase,
            client=self.call.client,
            started=self.call.started,
            policy_revision=self.cluster.revision if self.cluster and self.prepared else 0,
            policies=write.columns_of_policies(self.policies),
        )
        row = write.row(
            decision, decision_id=self.id, request_columns=self.columns, circumstances=circumstances
        )
        return Decided(RecordedDecision(id=self.id, decision=decision), row, self._write(decision))

    def _decision(self, read: BatchRead) -> Decision:
        cluster, request, prepared = self.cluster, self.request, self.prepared
        if cluster is None or request is None or prepared is None:
            return self.refusal or Decision(allowed=False)
        object_key, used_before = self.needs.object_key, prepared.before
        used = {
            quota: read.book.used(self.quotas[quota].id, object_key, used_before.get(quota, {}))
            for quota in prepared.quotas
        }
        decided, is_followed = prepared.decide(used), cluster.id in read.followed
        if not decided.allowed:
            if self.may_postpone and is_followed and self._may_get_room(decided):
                raise PostponedError
            return decided
        if is_followed and self._may_get_policies(cluster, request):
            return _not_known_yet(cluster, request.namespace)
        return self._charged(decided, request, read.book)

    def _write(self, decision: Decision) -> tuple[AdmissionRequest, int] | None:
        """The write of a policy that is let pass, which is announced to those that wait for it."""
        cluster, request = self.cluster, self.request
        if cluster is None or request is None or not hints.is_announced(request):
            return None
        is_let_pass = decision.allowed and self.prepared and self.call.phase is Phase.VALIDATE
        return (request, cluster.id) if is_let_pass else None

    def _may_get_room(self, decision: Decision) -> bool:
        """Whether nothing but a lack of room refuses, and a follower has time to free some.

        A client may learn of a deletion before the follower does, and create the next object.
        """
        if time.monotonic() + PATIENCE > self.deadline:
            return False
        return all(each.reason is Reason.EXCEEDED_QUOTA for each in decision.violations)

    def _may_get_policies(self, cluster: ClusterPolicies, request: AdmissionRequest) -> bool:
        """Whether a class may still give policies to the namespace that something begins in.

        Without a follower it might stay unknown for long: what is known decides then.
        """
        if cluster.authority is not Authority.PORTAL or not _begins_something(request):
            return False
        return cluster.awaits_policies(request.namespace)

    def _charged(self, decision: Decision, request: AdmissionRequest, book: Book) -> Decision:
        """Charge all quotas; deny the object instead where too many unconfirmed ones wait."""
        if not decision.charges or not self._may_charge:
            return decision
        object_key, most = self.needs.object_key, self.needs.most_waiting
        if book.over_cap(object_key[0], request.namespace, most, key=object_key):
            message = (
                f"namespace {request.namespace}: {most} admitted objects wait to be seen in the"
                " cluster; no more are admitted until they are, or are given up"
            )
            reason = Reason.TOO_MANY_UNCONFIRMED
            return _refusal(403, "Forbidden", reason, field="metadata.namespace", message=message)
        for charge in decision.charges:
            quota = charge.quota.name
            book.charge(
                self.quotas[quota].id,
                object_key,
                name=request.display_name,
                decided=charge,
                total=decision.used.get(quota),
                decision=self.id,
            )
        return decision


def _not_known_yet(cluster: ClusterPolicies, namespace: str) -> Decision:
    """Deny what begins in a namespace that a class may still give policies to: try again."""
    metrics.NOT_KNOWN_YET.labels(cluster=cluster.name).inc()
    message = (
        f"namespace {namespace} is not known to the portal yet, and may get policies from a"
        " namespace class; try again"
    )
    reason = Reason.NAMESPACE_NOT_KNOWN_YET
    return _refusal(503, "ServiceUnavailable", reason, field="metadata.namespace", message=message)


def _begins_something(request: AdmissionRequest) -> bool:
    """Whether an object is created that policies of its namespace would judge."""
    if request.operation is not Operation.CREATE or request.sub_resource:
        return False
    # A namespace comes before its policies, and these come to tell us of themselves.
    is_before = request.kind.kind == "Namespace" or chain.is_policy_object(request)
    return not is_before and not chain.is_canary(request)


def patient(request: AdmissionRequest) -> AdmissionRequest:
    """Limit the time of deciding a request, unless it is short and so decided quickly."""
    if request.is_plain:
        return request
    deciding_ends = time.monotonic() + LONGEST_REVIEW

    def pause() -> None:
        if time.monotonic() > deciding_ends:
            raise TooLongError

    return dataclasses.replace(request, pause=pause)


def _unfit(request: AdmissionRequest, resource: str, uid: str) -> Decision | None:
    """Deny names that no API server makes and the ledger has no column for."""
    all_names = f"{request.namespace}{request.display_name}{resource}{uid}"
    if len(all_names) <= LONGEST_UID and all_names.isascii() and all_names.isprintable():
        return None  # nearly all: one test in place of eight
    ledger_names = {
        "namespace": request.namespace,
        "name": request.display_name,
        "resource": resource,
        "object.metadata.uid": uid,
    }
    for name_field, ledger_name in ledger_names.items():
        longest_name = LONGEST_UID if name_field == "object.metadata.uid" else LONGEST_NAME
        if len(ledger_name) > longest_name or is_unstorable(ledger_name):
            field = f"request.{name_field}"
            message = f"{field}: is not a name that an API server makes"
            return _refusal(422, "Invalid", Reason.UNREADABLE_OBJECT, field=field, message=message)
    return None


def _refusal(code: int, status: str, reason: Reason, *, field: str, message: str) -> Decision:
    """A denial with one violation that no policy caused."""
    violation = Violation(reason=reason, field=field, message=message)
    return Decision(
        allowed=False, code=code, reason=status, message=message, violations=(violation,)
    )
