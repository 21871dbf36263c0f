"""One batch, one transaction: lock, check revisions, decide, write, answer; recover a FailedBatch.

Correctness rests on this order alone. The quotas' rows are locked before anything is read, in the
order of their ids, so that two batches never deadlock; an item whose rows another batch has locked
usually comes with the next batch. A cluster's revision is read after that, under a lock that
writers of its policies wait for: items prepared on an older one are prepared again. Answers are
given after the database has confirmed the commit, and not before. After an error ``recover`` finds
out what is on record, and tries the rest again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import DatabaseError, InterfaceError, connection, transaction

from admission import hints
from admission.record import write
from admission.writer import session
from admission.writer.failpoints import hit
from admission.writer.pending_decision import (
    BatchRead,
    FollowedWhen,
    OverBudgetError,
    PostponedError,
    UnavailableError,
    fail_all,
)
from admission.writer.session import Remedy, kind_of
from policies import snapshot
from policies.ledger.book import LedgerNeeds, ask_book

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from admission.writer.pending_decision import PendingDecision
    from engine.request import AdmissionRequest
    from policies.ledger.book import Book
    from policies.snapshot import Revisions

ATTEMPTS: Final = 6  # of one batch that loses its connection or its locks
MOST_PASSES: Final = 3  # batches that may skip an item, until one waits for its quotas


class _StaleError(Exception):
    """Policies were written since some items were prepared."""


class _PoisonedError(Exception):
    """Deciding one item failed: the others must not fail with it."""

    def __init__(self, pending: PendingDecision, error: Exception) -> None:
        super().__init__(str(error))
        self.pending = pending
        self.error = error


ERRORS: Final = (_StaleError, _PoisonedError, DatabaseError, InterfaceError)
"""What a failed attempt raises, and ``recover`` may cure."""


@dataclass(slots=True)
class Attempt:
    """One transaction: its items and decisions, and whether it came as far as the commit."""

    batch: list[PendingDecision]
    waits: bool
    decided: list[tuple[PendingDecision, Any]] = field(default_factory=list)
    passed: list[PendingDecision] = field(default_factory=list)
    postponed: list[tuple[PendingDecision, PostponedError]] = field(default_factory=list)
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    announced: list[tuple[AdmissionRequest, int]] = field(default_factory=list)
    is_complete: bool = False
    mark: int | None = None  # of the session that it ran on


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """A transaction that failed, and its error: the input of ``recover``."""

    attempt: Attempt
    batch_error: _StaleError | _PoisonedError | DatabaseError | InterfaceError

    @property
    def batch(self) -> list[PendingDecision]:
        """Its items."""
        return self.attempt.batch

    @property
    def is_loss(self) -> bool:
        """Whether its session is lost, so that the end of the transaction is unknown."""
        return self._needs(Remedy.GONE)

    @property
    def is_late(self) -> bool:
        """Whether a statement ran into its timeout."""
        return self._needs(Remedy.LATE)

    def _needs(self, remedy: Remedy) -> bool:
        if isinstance(self.batch_error, DatabaseError | InterfaceError):
            return kind_of(self.batch_error) is remedy
        return False


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """Whether the database could be reached, and the items that the next batch has to take."""

    is_reachable: bool
    passed: list[PendingDecision] = field(default_factory=list)
    is_crowded: bool = False  # every item was passed by


def commit(batch: list[PendingDecision], *, waits: bool = True) -> BatchOutcome:
    """Decide and record the items, then answer them.

    Unless it ``waits`` for locks, items whose quotas another batch has locked are passed by, so
    that the others need not wait; these get an answer or an error.
    """
    outcome = try_once(batch, waits=waits)
    return outcome if isinstance(outcome, BatchOutcome) else recover(outcome)


def try_once(batch: list[PendingDecision], *, waits: bool) -> BatchOutcome | FailedBatch:
    """Do as ``commit`` does, but return a failure: ``recover`` may have to wait."""
    attempt = begin(batch, waits=waits)
    if not attempt.batch:
        return BatchOutcome(is_reachable=True)
    try:
        # Before the transaction: a lock of a session outlives its transactions.
        session.open_marked()
        attempt.mark = session.mark()
        with session.turn(), transaction.atomic():
            for _ in steps(attempt):
                pass  # on Django's connection each statement waits for its rows
        hit("after-commit")
    except ERRORS as error:
        return FailedBatch(attempt, error)
    return finish(attempt)


def begin(batch: list[PendingDecision], *, waits: bool) -> Attempt:
    """Begin an attempt with those items whose callers still wait."""
    wanted = _still_wanted(batch)
    # A single item holds up no other, and an item must not be passed by for ever.
    must_wait = len(wanted) == 1 or any(pending.passes >= MOST_PASSES for pending in wanted)
    return Attempt(wanted, waits or must_wait)


def finish(attempt: Attempt) -> BatchOutcome:
    """Answer the items of a committed attempt."""
    passed = _answer(attempt)
    is_crowded = bool(passed) and not (attempt.decided or attempt.postponed)
    return BatchOutcome(is_reachable=True, passed=passed, is_crowded=is_crowded)


def recover(failed: FailedBatch) -> BatchOutcome:
    """Repair the cause of a failure and try again, as long as that may help."""
    waits, is_reachable = failed.attempt.waits, True
    for _ in range(ATTEMPTS):
        to_retry, is_reachable = _recover_from(failed)
        wanted = _still_wanted(to_retry)
        if not wanted:
            return BatchOutcome(is_reachable)
        outcome = try_once(wanted, waits=waits)
        if isinstance(outcome, BatchOutcome):
            return outcome
        failed = outcome
    for pending in failed.batch:
        pending.fail(UnavailableError())
    return BatchOutcome(is_reachable)


def _still_wanted(batch: list[PendingDecision]) -> list[PendingDecision]:
    """Drop items whose callers have given up: they are neither charged nor recorded."""
    wanted = []
    for pending in batch:
        if pending.is_over:
            pending.fail(OverBudgetError())
        else:
            wanted.append(pending)
    return wanted


def steps(attempt: Attempt) -> Iterator[None]:
    """The transaction of an attempt, in steps: after each, all that was asked must be answered."""
    batch = attempt.batch
    hit("batch-begin")
    asked = _ask(batch, waits=attempt.waits)
    yield
    read = BatchRead(asked.book(), asked.followed())
    hit("after-lock")
    revisions = asked.revisions()
    for cluster_id, uid, revision in {stamp for pending in batch if (stamp := pending.stamp)}:
        if revisions.get(cluster_id) != (uid, revision):
            raise _StaleError
    hit("after-revision")
    for pending in _those_unlocked(batch, read.book, attempt):
        _decide(pending, read, attempt)
    hit("after-decide")
    announced = [hints.ask_to_announce(*each) for each in attempt.announced]
    if announced:
        yield
        for note_announced in announced:
            note_announced()
    hit("before-ledger")
    # Queued like the rows below, and sent with the commit: few packets, one wait.
    read.book.write()
    hit("after-ledger")
    hit("before-audit")
    write.write(attempt.rows)
    hit("after-audit")
    attempt.is_complete = True
    hit("before-commit")


class _Asked(NamedTuple):
    """The reads of a batch that were sent; each waits for its rows."""

    book: Callable[[], Book]
    followed: Callable[[], frozenset[int]]
    revisions: Callable[[], Revisions]


def _ask(batch: list[PendingDecision], *, waits: bool) -> _Asked:
    """Send all reads of a batch, in the order in which they have to lock."""
    all_needs = [pending.needs for pending in batch]
    counted = [needs for needs in all_needs if needs.quota_ids]
    of_ledger = LedgerNeeds(
        quota_ids={quota_id for needs in counted for quota_id in needs.quota_ids},
        objects={needs.object_key for needs in counted},
        grown={quota_id for needs in counted for quota_id in needs.grown_ids},
        places={
            (needs.object_key[0], needs.namespace): needs.most_waiting
            for needs in counted
            if needs.most_waiting
        },
    )
    book = ask_book(of_ledger, waits=waits)
    clusters_of: dict[FollowedWhen | None, set[int]] = defaultdict(set)
    for needs in all_needs:
        clusters_of[needs.followed].add(needs.object_key[0])
    followed = snapshot.ask_followed(
        clusters_of[FollowedWhen.NOW], clusters_of[FollowedWhen.LATELY]
    )
    cluster_ids = {stamp[0] for pending in batch if (stamp := pending.stamp)}
    return _Asked(book, followed, snapshot.ask_revisions(sorted(cluster_ids)))


def _those_unlocked(
    batch: list[PendingDecision], book: Book, attempt: Attempt
) -> list[PendingDecision]:
    """Pass by items whose quotas another batch has locked; returns the others."""
    if attempt.waits:
        return batch
    unlocked: list[PendingDecision] = []
    for pending in batch:
        is_unlocked = all(map(book.has, pending.needs.quota_ids))
        (unlocked if is_unlocked else attempt.passed).append(pending)
    return unlocked


def _decide(pending: PendingDecision, read: BatchRead, attempt: Attempt) -> None:
    if pending.is_over:
        return
    try:
        decided = pending.decide(read)
    except PostponedError as postponed:
        attempt.postponed.append((pending, postponed))
        return
    except Exception as error:
        raise _PoisonedError(pending, error) from error
    attempt.decided.append((pending, decided.answer))
    attempt.rows.append(decided.row)
    if decided.announced:
        attempt.announced.append(decided.announced)


def _prepare_again(batch: list[PendingDecision]) -> list[PendingDecision]:
    policies, prepared = snapshot.refresh(), []
    for pending in batch:
        try:
            pending.prepare(policies)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this item's alone
            pending.fail(error)
        else:
            prepared.append(pending)
    return prepared


def _answer(attempt: Attempt) -> list[PendingDecision]:
    """Answer all items but those that were passed by, which are returned."""
    hit("before-answer")
    for pending, answer in attempt.decided:
        pending.answer(answer)
    for pending, postponed in attempt.postponed:
        pending.fail(postponed)
    for pending in attempt.passed:
        pending.passes += 1
    settled = chain(attempt.decided, attempt.postponed)
    handled = {id(pending) for pending, _ in settled} | set(map(id, attempt.passed))
    for pending in attempt.batch:
        if id(pending) not in handled:
            pending.fail(OverBudgetError())
    return attempt.passed


def _recover_from(failed: FailedBatch) -> tuple[list[PendingDecision], bool]:
    """Handle an error; returns the items to try again, and whether the database answers."""
    batch, error = failed.batch, failed.batch_error
    if isinstance(error, _StaleError):
        return _prepare_again(batch), True
    if isinstance(error, _PoisonedError):
        error.pending.fail(error.error)
        return [pending for pending in batch if pending is not error.pending], True
    if connection.in_atomic_block:
        raise error  # the transaction of our caller, who has to end it
    return _repair(failed, kind_of(error))


def _repair(failed: FailedBatch, remedy: Remedy) -> tuple[list[PendingDecision], bool]:
    """Handle an error of the database."""
    batch, attempt = failed.batch, failed.attempt
    if attempt.is_complete and remedy is Remedy.GONE:
        return _look_up(attempt)
    if remedy is Remedy.ITEM:
        _one_by_one(batch, failed.batch_error)
        return [], True
    if remedy is Remedy.PARTITION:
        write.make_room()
    if remedy is Remedy.GONE:
        session.close()
    if remedy is Remedy.DENIED:
        fail_all(batch, failed.batch_error)
        return [], False
    return batch, remedy not in {Remedy.GONE, Remedy.LATE}


def _one_by_one(batch: list[PendingDecision], error: Exception) -> None:
    """Commit each item by itself, so that a poisoned one fails alone."""
    if len(batch) == 1:
        fail_all(batch, error)
    else:
        for pending in batch:
            commit([pending])


def _look_up(attempt: Attempt) -> tuple[list[PendingDecision], bool]:
    """Look for the rows of a transaction whose commit was not confirmed."""
    try:
        # Once the lost session has ended, the answer of the record is final.
        session.renew(attempt.mark)
        is_recorded = write.recorded([pending.id for pending, _ in attempt.decided])
    except (DatabaseError, InterfaceError) as error:
        session.close()
        fail_all(attempt.batch, error)
        return [], False
    if not is_recorded:
        return attempt.batch, True
    return _answer(attempt), True
