"""One batch in one transaction: lock quotas, check revisions, decide, write, commit, answer.

Correctness rests on this order alone. The quotas' rows are locked before anything is read, in the
order of their ids, so that two batches never deadlock; an item whose rows another batch has locked
usually comes with the next batch. A cluster's revision is read after that, under a lock that
writers of its policies wait for: items prepared on an older one are prepared again. Answers are
given after the database has confirmed the commit, and not before. After an error ``recover`` finds
out what is on record, and tries the rest again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db import DatabaseError, InterfaceError, connection

from admission.record import write
from admission.writer import session
from admission.writer.failpoints import hit
from admission.writer.pending_decision import OverBudgetError, UnavailableError, fail_all
from admission.writer.session import Remedy, kind_of
from policies import snapshot
from policies.db.deferred import transaction_of_few_packets
from policies.ledger.book import ask_book

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from admission.writer.pending_decision import PendingDecision
    from policies.ledger.book import Book
    from policies.snapshot import Revisions

ATTEMPTS: Final = 6  # of one batch that loses its connection or its locks
MOST_PASSES: Final = 3  # batches that may skip an item, until one waits for its quotas


class _StaleError(Exception):
    """Policies were written since some items were prepared."""


class _PoisonedError(Exception):
    """Deciding one item failed: the others must not fail with it."""

    def __init__(self, item: PendingDecision, error: Exception) -> None:
        super().__init__(str(error))
        self.item = item
        self.error = error


@dataclass(slots=True)
class _Attempt:
    """One transaction: its decisions, and whether it came as far as the commit."""

    waits: bool
    decided: list[tuple[PendingDecision, Any]] = field(default_factory=list)
    passed: list[PendingDecision] = field(default_factory=list)
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    is_complete: bool = False
    mark: int | None = None  # of the session that it ran on


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """A transaction that failed, with its items and its error: the input of ``recover``."""

    items: list[PendingDecision]
    attempt: _Attempt
    error: _StaleError | _PoisonedError | DatabaseError | InterfaceError

    @property
    def is_loss(self) -> bool:
        """Whether its session is lost, so that the end of the transaction is unknown."""
        return self._is(Remedy.GONE)

    @property
    def is_late(self) -> bool:
        """Whether a statement ran into its timeout."""
        return self._is(Remedy.LATE)

    def _is(self, kind: Remedy) -> bool:
        if isinstance(self.error, DatabaseError | InterfaceError):
            return kind_of(self.error) is kind
        return False


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """Whether the database could be reached, and the items that the next batch has to take."""

    is_reachable: bool
    passed: list[PendingDecision] = field(default_factory=list)
    is_crowded: bool = False  # every item was passed by


def commit(items: list[PendingDecision], *, waits: bool = True) -> BatchOutcome:
    """Decide and record the items, then answer them.

    Unless it ``waits`` for locks, items whose quotas another batch has locked are passed by, so
    that the others need not wait; these get an answer or an error.
    """
    found = try_once(items, waits=waits)
    return found if isinstance(found, BatchOutcome) else recover(found)


def try_once(items: list[PendingDecision], *, waits: bool) -> BatchOutcome | FailedBatch:
    """Do as ``commit`` does, but return a failure: ``recover`` may have to wait."""
    waiting = _still_wanted(items)
    if not waiting:
        return BatchOutcome(is_reachable=True)
    # A single item holds up no other, and an item must not be passed by for ever.
    must_wait = len(waiting) == 1 or any(item.passes >= MOST_PASSES for item in waiting)
    attempt = _Attempt(waits or must_wait)
    try:
        _run(waiting, attempt)
    except (_StaleError, _PoisonedError, DatabaseError, InterfaceError) as error:
        return FailedBatch(waiting, attempt, error)
    passed = _answer(attempt, waiting)
    is_crowded = bool(passed) and not attempt.decided
    return BatchOutcome(is_reachable=True, passed=passed, is_crowded=is_crowded)


def recover(failed: FailedBatch) -> BatchOutcome:
    """Repair the cause of a failure and try again, as long as that may help."""
    waits, is_reachable = failed.attempt.waits, True
    for _ in range(ATTEMPTS):
        left, is_reachable = _recover_from(failed)
        waiting = _still_wanted(left)
        if not waiting:
            return BatchOutcome(is_reachable)
        found = try_once(waiting, waits=waits)
        if isinstance(found, BatchOutcome):
            return found
        failed = found
    for item in failed.items:
        item.fail(UnavailableError())
    return BatchOutcome(is_reachable)


def _still_wanted(items: list[PendingDecision]) -> list[PendingDecision]:
    """Drop items whose callers have given up: they are neither charged nor recorded."""
    wanted = []
    for item in items:
        if item.is_over:
            item.fail(OverBudgetError())
        else:
            wanted.append(item)
    return wanted


def _run(items: list[PendingDecision], attempt: _Attempt) -> None:
    # Before the transaction: a lock of a session outlives its transactions.
    session.open_marked()
    attempt.mark = session.mark()
    with session.turn(), transaction_of_few_packets():
        hit("batch-begin")
        ask_book, ask_revisions = _ask(items, waits=attempt.waits)
        book = ask_book()
        hit("after-lock")
        found = ask_revisions()
        for cluster_id, uid, revision in {stamp for item in items if (stamp := item.stamp)}:
            if found.get(cluster_id) != (uid, revision):
                raise _StaleError
        hit("after-revision")
        for item in _those_free(items, book, attempt):
            _decide(item, book, attempt)
        hit("after-decide")
        hit("before-ledger")
        # Queued like the rows below, and sent with the commit: few packets, one wait.
        book.write()
        hit("after-ledger")
        hit("before-audit")
        write.write(attempt.rows)
        hit("after-audit")
        attempt.is_complete = True
        hit("before-commit")
    hit("after-commit")


def _ask(
    items: list[PendingDecision], *, waits: bool
) -> tuple[Callable[[], Book], Callable[[], Revisions]]:
    """Send all reads of a batch, in the order in which they have to lock."""
    quota_ids = {quota_id for item in items for quota_id in item.quota_ids}
    objects = {item.object_key for item in items if item.quota_ids}
    clusters = {stamp[0] for item in items if (stamp := item.stamp)}
    book = ask_book(quota_ids, objects, waits=waits)
    return book, snapshot.ask_revisions(sorted(clusters))


def _those_free(
    items: list[PendingDecision], book: Book, attempt: _Attempt
) -> list[PendingDecision]:
    """Pass by items whose quotas another batch has locked; returns the others."""
    if attempt.waits:
        return items
    free: list[PendingDecision] = []
    for item in items:
        is_free = all(map(book.has, item.quota_ids))
        (free if is_free else attempt.passed).append(item)
    return free


def _decide(item: PendingDecision, book: Book, attempt: _Attempt) -> None:
    if item.is_over:
        return
    try:
        answer, row = item.decide(book)
    except (DatabaseError, InterfaceError):
        raise  # the whole batch's
    except Exception as error:
        raise _PoisonedError(item, error) from error
    attempt.decided.append((item, answer))
    attempt.rows.append(row)


def _prepare_again(items: list[PendingDecision]) -> list[PendingDecision]:
    policies, prepared = snapshot.refresh(), []
    for item in items:
        try:
            item.prepare(policies)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this item's alone
            item.fail(error)
        else:
            prepared.append(item)
    return prepared


def _answer(attempt: _Attempt, items: list[PendingDecision]) -> list[PendingDecision]:
    """Answer all items but those that were passed by, which are returned."""
    hit("before-answer")
    for item, answer in attempt.decided:
        item.answer(answer)
    for item in attempt.passed:
        item.passes += 1
    done = {id(item) for item, _ in attempt.decided} | set(map(id, attempt.passed))
    for item in items:
        if id(item) not in done:
            item.fail(OverBudgetError())
    return attempt.passed


def _recover_from(failed: FailedBatch) -> tuple[list[PendingDecision], bool]:
    """Handle an error; returns the items to try again, and whether the database answers."""
    items, error = failed.items, failed.error
    if isinstance(error, _StaleError):
        return _prepare_again(items), True
    if isinstance(error, _PoisonedError):
        error.item.fail(error.error)
        return [item for item in items if item is not error.item], True
    if connection.in_atomic_block:
        raise error  # the transaction of our caller, who has to end it
    return _repair(failed, kind_of(error))


def _repair(failed: FailedBatch, found: Remedy) -> tuple[list[PendingDecision], bool]:
    """Handle an error of the database."""
    items, attempt = failed.items, failed.attempt
    if attempt.is_complete and found is Remedy.GONE:
        return _look_up(attempt, items)
    if found is Remedy.ITEM:
        _one_by_one(items, failed.error)
        return [], True
    if found is Remedy.PARTITION:
        write.make_room()
    if found is Remedy.GONE:
        session.close()
    if found is Remedy.DENIED:
        fail_all(items, failed.error)
        return [], False
    return items, found not in {Remedy.GONE, Remedy.LATE}


def _one_by_one(items: list[PendingDecision], error: Exception) -> None:
    """Commit each item by itself, so that a poisoned one fails alone."""
    if len(items) == 1:
        fail_all(items, error)
    else:
        for item in items:
            commit([item])


def _look_up(attempt: _Attempt, items: list[PendingDecision]) -> tuple[list[PendingDecision], bool]:
    """Look for the rows of a transaction whose commit was not confirmed."""
    try:
        # Once the lost session has ended, the answer of the record is final.
        session.renew(attempt.mark)
        kept = write.recorded([item.id for item, _ in attempt.decided])
    except (DatabaseError, InterfaceError) as error:
        session.close()
        fail_all(items, error)
        return [], False
    if not kept:
        return items, True
    return _answer(attempt, items), True
