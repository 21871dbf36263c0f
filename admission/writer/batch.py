"""One batch in one transaction: lock quotas, check revisions, decide, write, commit, answer.

Correctness rests on this order alone. The quotas' rows are locked before anything is read, in the
order of their ids, so that two batches never wait for each other; whose rows somebody else holds
comes with the next batch, as a rule. A cluster's revision is read after that, under a lock that
its policies' writers wait for: what was prepared on an older one is prepared again. Answers are
given when the database said that all is kept, and not before.
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
from policies import ledger, snapshot
from policies.db.deferred import transaction_of_few_packets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from admission.writer.pending_decision import PendingDecision
    from policies.ledger import Book
    from policies.snapshot import Revisions

ATTEMPTS: Final = 6  # of one batch that loses its database, or a fight for locks
MOST_PASSES: Final = 3  # batches that may go by without an item, until all wait for its quotas


class _StaleError(Exception):
    """Policies were written since some items were prepared."""


class _PoisonedError(Exception):
    """One item cannot be decided: the others must not fail with it."""

    def __init__(self, item: PendingDecision, error: Exception) -> None:
        super().__init__(str(error))
        self.item = item
        self.error = error


@dataclass(slots=True)
class _Attempt:
    """One transaction: what was decided, and whether the commit was sent."""

    waits: bool
    decided: list[tuple[PendingDecision, Any]] = field(default_factory=list)
    passed: list[PendingDecision] = field(default_factory=list)
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    is_complete: bool = False
    mark: int | None = None  # of the session that it ran on


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """A transaction that failed, with those who wait for it: ``recover`` knows what to do."""

    items: list[PendingDecision]
    attempt: _Attempt
    error: _StaleError | _PoisonedError | DatabaseError | InterfaceError

    @property
    def is_loss(self) -> bool:
        """Whether its session is gone, or has to go: nobody knows what became of it."""
        return self._is(Remedy.GONE)

    @property
    def is_late(self) -> bool:
        """Whether the database gave up a statement for its time."""
        return self._is(Remedy.LATE)

    def _is(self, kind: Remedy) -> bool:
        if isinstance(self.error, DatabaseError | InterfaceError):
            return kind_of(self.error) is kind
        return False


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """Whether the database could be reached, and who has to come again with the next batch."""

    is_reachable: bool
    passed: list[PendingDecision] = field(default_factory=list)
    is_crowded: bool = False  # everybody was passed by


def commit(items: list[PendingDecision], *, waits: bool = True) -> BatchOutcome:
    """Decide and record the items, then answer them.

    Unless it ``waits`` for them, those whose quotas somebody else holds are passed by, so that the
    others need not wait, too; all others get an answer or an error.
    """
    found = try_once(items, waits=waits)
    return found if isinstance(found, BatchOutcome) else recover(found)


def try_once(items: list[PendingDecision], *, waits: bool) -> BatchOutcome | FailedBatch:
    """Do as ``commit`` does, but leave a failure to whoever may wait for its end."""
    waiting = _still_wanted(items)
    if not waiting:
        return BatchOutcome(is_reachable=True)
    # One alone has nothing else to do, and whoever was passed by often enough goes by no more.
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
    """Find out what is to be done about it, and try again as long as that may help."""
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
    """Put aside what nobody waits for any more: it is neither charged nor recorded."""
    wanted = []
    for item in items:
        if item.is_over:
            item.fail(OverBudgetError())
        else:
            wanted.append(item)
    return wanted


def _run(items: list[PendingDecision], attempt: _Attempt) -> None:
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
    """Send all that is to be read, in the order in which it has to be locked."""
    quota_ids = {quota_id for item in items for quota_id in item.quota_ids}
    objects = {item.object_key for item in items if item.quota_ids}
    clusters = {stamp[0] for item in items if (stamp := item.stamp)}
    book = ledger.ask_book(quota_ids, objects, waits=waits)
    return book, snapshot.ask_revisions(sorted(clusters))


def _those_free(
    items: list[PendingDecision], book: Book, attempt: _Attempt
) -> list[PendingDecision]:
    """Pass by those whose quotas somebody else holds."""
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
        raise
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
    """Answer all but those who were passed by, which are returned."""
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
    """Find out what an error means; returns what is to be tried again, and if anybody listens."""
    items, error = failed.items, failed.error
    if isinstance(error, _StaleError):
        return _prepare_again(items), True
    if isinstance(error, _PoisonedError):
        error.item.fail(error.error)
        return [item for item in items if item is not error.item], True
    if connection.in_atomic_block:
        raise error  # somebody else's transaction: it is not ours to repair
    return _repair(failed, kind_of(error))


def _repair(failed: FailedBatch, found: Remedy) -> tuple[list[PendingDecision], bool]:
    """Do what helps against an error of the database."""
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
    """Let a poisoned item fail alone."""
    if len(items) == 1:
        fail_all(items, error)
    else:
        for item in items:
            commit([item])


def _look_up(attempt: _Attempt, items: list[PendingDecision]) -> tuple[list[PendingDecision], bool]:
    """See what became of a transaction whose end was not heard: it is on record, or it is not."""
    try:
        session.renew(attempt.mark)
        kept = write.recorded([item.id for item, _ in attempt.decided])
    except (DatabaseError, InterfaceError) as error:
        session.close()
        fail_all(items, error)
        return [], False
    if not kept:
        return items, True
    return _answer(attempt, items), True
