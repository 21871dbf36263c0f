"""Journal of a SyncRun: stage, progress and SyncResults intended, noted, settled, flushed."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from policies.db.clock import read_clock
from sync.models import SyncResult, SyncRun
from sync.passes.baseline import differences_of
from sync.values import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sync.passes.compare import ComparedObject
    from sync.runs.leases import Holder

Outcome = SyncResult.Outcome
_PROGRESS_SECONDS: Final = 0.5
"""Between two writes of progress: one for each object would cost more than the objects."""


class Journal:
    """The record of one run; ``counts`` are stored in the run when it ends.

    All methods raise ``LostLeaseError`` if the lease is lost, and then have written nothing.
    """

    def __init__(self, run: SyncRun, lease: Holder) -> None:
        self.run = run
        self.lease = lease
        self.counts: Counter[str] = Counter()
        self.noted: dict[ObjectKey, SyncResult] = {}
        self._progress_written = 0.0

    @property
    def is_preview(self) -> bool:
        """Whether neither side may be written to."""
        return self.run.mode == SyncRun.Mode.PREVIEW

    @property
    def reads_only(self) -> bool:
        """Whether the cluster may not be written to."""
        return self.run.mode == SyncRun.Mode.IMPORT

    def stage(self, stage: str, *, total: int = 0) -> None:
        """Store the present stage, and the number of its objects."""
        self.run.stage, self.run.total, self.run.done = stage[:100], total, 0
        self._write_progress()

    def step(self, done: int = 1) -> None:
        """Count objects as done; stored from time to time."""
        self.run.done += done
        if time.monotonic() - self._progress_written > _PROGRESS_SECONDS:
            self._write_progress()

    def _write_progress(self) -> None:
        self._progress_written = time.monotonic()
        run = self.run
        with self.lease.guard():
            self.lease.renew()
            SyncRun.objects.filter(pk=run.pk).update(
                stage=run.stage, total=run.total, done=run.done, heartbeat=read_clock()
            )

    def intend(self, noted: ComparedObject, action: str) -> SyncResult | None:
        """Record an action before it is done to the cluster; None if this run did it before."""
        with self.lease.guard():
            intended, _ = SyncResult.objects.get_or_create(
                run=self.run,
                kind=noted.key.kind,
                namespace=noted.key.namespace,
                name=noted.key.name,
                defaults={
                    "action": action,
                    "outcome": Outcome.INTENDED,
                    "differences": differences_of(noted),
                },
            )
            if intended.outcome == Outcome.HELD:  # a person has confirmed it since
                intended.outcome = Outcome.INTENDED
                intended.save(update_fields=["outcome"])
            return intended if intended.outcome == Outcome.INTENDED else None

    def settle(self, settled: SyncResult, outcome: str, message: str = "") -> None:
        """Store the outcome of an intent, in the caller's ``guard`` with the object's row."""
        settled.outcome, settled.message, settled.finished = outcome, message, read_clock()
        settled.save(update_fields=["outcome", "message", "finished"])
        counted_as = settled.action if outcome in (Outcome.DONE, Outcome.INTENDED) else outcome
        self.counts[counted_as] += 1

    def note(self, noted: ComparedObject, action: str, outcome: str, message: str = "") -> None:
        """Keep a result that needs no intent for the next ``flush``."""
        self.noted[noted.key] = SyncResult(
            run=self.run,
            kind=noted.key.kind,
            namespace=noted.key.namespace,
            name=noted.key.name,
            action=action,
            outcome=outcome,
            message=message,
            differences=differences_of(noted),
        )
        self.counts[action if outcome == Outcome.DONE else outcome] += 1

    def note_conflicts(self, noted_objects: Iterable[ComparedObject]) -> None:
        """Write the conflicts that are new; inside the caller's ``guard``."""
        for noted in noted_objects:
            state_before = noted.row.state if noted.row else ""
            if noted.verdict.state == "conflict" and state_before != "conflict":
                self.note(noted, "none", Outcome.CONFLICT, "both sides were changed")
        self.flush()

    def flush(self) -> None:
        """Write the noted results; inside the caller's ``guard``."""
        flushed_at = read_clock()
        for noted_result in self.noted.values():
            noted_result.finished = flushed_at
        # An upsert: a run that begins again after a lost worker has results of its first attempt.
        SyncResult.objects.bulk_create(
            self.noted.values(),
            update_conflicts=True,
            unique_fields=["run", "kind", "namespace", "name"],
            update_fields=["action", "outcome", "message", "differences", "finished"],
        )
        self.noted = {}

    def settle_leftovers(self, noted_objects: Mapping[ObjectKey, ComparedObject]) -> None:
        """Settle the intents of an earlier attempt that the cluster shows as done."""
        leftovers = SyncResult.objects.filter(run=self.run, outcome=Outcome.INTENDED)
        with self.lease.guard():
            for result in leftovers:
                noted = noted_objects.get(ObjectKey(result.kind, result.namespace, result.name))
                if noted is not None and noted.verdict.action == "none" and noted.agrees:
                    self.settle(result, Outcome.DONE, "found done: the worker was lost afterwards")
