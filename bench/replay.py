"""`python -m bench replay`: 100,000 decisions of the demo's mix under a proposed LimitRange."""

from __future__ import annotations

import itertools
import multiprocessing
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import django
import orjson
from django.db import connection, transaction

from admission.models import AuditEvent, decision_id, partitions
from admission.record import write
from admission.replay import run as replay_run
from admission.replay import work
from admission.replay.policies import Proposal, drafted
from admission.replay.scope import ReplayScope
from bench import report
from policies import snapshot
from portal.dev.demo import CLUSTER, begin_demo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admission.replay.recorded import PastDecision

DECISIONS: Final = 100_000
DAYS: Final = 60
SECONDS_GOAL, MEMORY_GOAL = 20.0, 100.0  # of processor time; MiB
BATCH: Final = 500
_COLUMNS: Final = tuple(field.name for field in AuditEvent._meta.concrete_fields)  # noqa: SLF001 - Django's own way to ask


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one replay took."""

    seconds: float
    mebibytes: float
    decisions: int
    judged: int


def measure() -> int:
    """Replay them as they are, and with a label of its own on each. 0: the goals are met."""
    begin_demo()
    multiply()
    connection.close()
    # A process each, so that the peak of memory is its own.
    processes = multiprocessing.get_context("spawn")
    with processes.Pool(1, initializer=django.setup, maxtasksperchild=1) as pool:
        found = {
            "as recorded": pool.apply(replayed, (False,)),
            "no two alike": pool.apply(replayed, (True,)),
        }
    table = [["decisions", "", "CPU s", "peak MiB", "judged"]]
    for name, each in found.items():
        numbers = (f"{each.seconds:.1f}", f"{each.mebibytes:.0f}", f"{each.judged:,}")
        table.append([f"{each.decisions:,}", name, *numbers])
    print(f"\n{connection.vendor}\n")
    print(report.table(table))
    kept = {name: [each.seconds, each.mebibytes, each.judged] for name, each in found.items()}
    report.save({"database": connection.vendor, **kept}, name=f"replay-{connection.vendor}")
    whole = found["as recorded"]
    return 0 if whole.seconds < SECONDS_GOAL and whole.mebibytes < MEMORY_GOAL else 2


def multiply() -> None:
    """Record the demo's decisions again and again, each a moment later."""
    dice = Random(1)  # noqa: S311 - repeatable on purpose
    originals = list(AuditEvent.objects.for_cluster(CLUSTER).values(*_COLUMNS))
    missing = max(0, DECISIONS - len(originals))
    copies = (copy_of(row, dice) for row in itertools.cycle(originals))
    while missing:
        batch = list(itertools.islice(copies, min(BATCH, missing)))
        for day in {row["created"].date() for row in batch}:
            partitions.ensure(day)
        with transaction.atomic():
            write.write(batch)
        missing -= len(batch)


def copy_of(row: dict[str, Any], dice: Random) -> dict[str, Any]:
    """The same decision some time before."""
    milliseconds = int(row["created"].timestamp() * 1000) - dice.randrange(1, 60_000)
    new_id = decision_id.encode(milliseconds, dice.getrandbits(32))
    return {**row, "id": new_id, "created": decision_id.moment(new_id)}


def replayed(is_told_apart: bool) -> Replayed:  # noqa: FBT001 - the pool passes it
    """Replay all of them in this process."""
    until = datetime.now(UTC)
    scope = ReplayScope(cluster=CLUSTER, since=until - timedelta(days=DAYS), until=until)
    base = work.base_of(snapshot.refresh().clusters[CLUSTER])
    draft = drafted(base, Proposal(manifests=tuple(map(proposed, base.by_namespace))))
    pieces = told_apart(scope.pieces()) if is_told_apart else scope.pieces()
    begin = time.process_time()
    *_, found = replay_run.replay(pieces, base, draft)
    seconds = time.process_time() - begin
    return Replayed(seconds, peak_of_process(), found.decisions, found.judged)


def peak_of_process() -> float:
    """The most memory that was resident since this program began, in MiB."""
    # The figure of getrusage begins with that of the parent.
    status = Path("/proc/self/status").read_text("utf-8")
    return int(re.findall(r"VmHWM:\s+([0-9]+) kB", status)[0]) / 1024


def proposed(namespace: str) -> dict[str, Any]:
    """A LimitRange that refuses some of what the demo runs."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "proposed", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "900m"}}]},
    }


def told_apart(pieces: Iterator[list[PastDecision]]) -> Iterator[list[PastDecision]]:
    """The same decisions, each about an object with a label that no other has."""
    numbers = itertools.count()
    for piece in pieces:
        labelled = []
        for each in piece:
            request = orjson.loads(each.request)
            metadata = (request.get("object") or {}).get("metadata")
            if isinstance(metadata, dict):
                metadata["labels"] = {**(metadata.get("labels") or {}), "n": str(next(numbers))}
            labelled.append(each._replace(request=orjson.dumps(request).decode()))
        yield labelled
