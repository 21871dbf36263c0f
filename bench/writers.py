"""The writer without HTTP, beside the floors of the database.

`python -m bench.writers ROUNDS SECONDS postgresql|sqlite usual|slow` prints decisions each second
as JSON. Two processes of 16 callers each, closed loop; what is written is what the product writes.
The callers of the floors are threads, those of the writer tasks of the loop that it runs in.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import multiprocessing
import os
import secrets
import sqlite3
import sys
import time
import uuid
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import django
import psycopg
import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from threading import Barrier

    from engine.request import AdmissionRequest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from django.db import connection  # noqa: E402 - Django must be set up first

from admission import decide, writer  # noqa: E402
from admission.alike import ReadReview  # noqa: E402
from admission.models.decision_id import encode  # noqa: E402
from admission.record.write import columns_of  # noqa: E402
from admission.wire.review import parse_request  # noqa: E402
from bench import figures, review  # noqa: E402
from bench.figures import HOT, SPREAD, key  # noqa: E402
from engine.request import Phase  # noqa: E402
from policies import snapshot  # noqa: E402
from policies.models import QuotaUsage  # noqa: E402
from portal.serving.application import settle  # noqa: E402

PROCESSES: Final = 2
CALLERS: Final = 16
PATIENCE: Final = 600.0  # seconds: an item may wait as long as the pool of items lasts
FEWEST: Final = 1000  # items that a process is given for each second; more, once it was faster
NAMESPACES: Final = {HOT: review.HOT, SPREAD: review.SPREAD}
FORMS: Final = (
    (figures.INSERT, SPREAD),
    (figures.PER_REQUEST, SPREAD),
    (figures.PER_REQUEST, HOT),
    (figures.WRITER, SPREAD),
    (figures.WRITER, HOT),
)
_ready: Barrier | None = None


class Floor:
    """What the database itself allows: raw statements, one transaction for each review.

    `insert` is one row of the record and a commit. `per_request` is the whole charge as one writes
    it in SQL: lock the used amount, update it, insert charge and row, commit. Rows are like the
    first ones that the product wrote. A thread has a connection of its own.
    """

    def __init__(self, quotas: Sequence[tuple[int, str, str]]) -> None:
        """``quotas`` has id, uid and namespace of each that may be charged."""
        address = os.environ["GATEHOUSE_DATABASE_URL"]
        self.quotas, self.is_postgresql = quotas, address.startswith("postgres")
        self.connection: Any = _connect(address)
        self.mark = "%s" if self.is_postgresql else "?"
        self.row, self.insert_row = self._like_the_first("admission_auditevent")
        self.charge, self.insert_charge = self._like_the_first("policies_charge", without="id")
        lock = " FOR NO KEY UPDATE" if self.is_postgresql else ""
        where = f"WHERE cluster_id = {self.mark} AND quota_id = {self.mark}"
        self.lock = f"SELECT used FROM policies_quotausage {where}{lock}"  # noqa: S608 - our own words
        self.update = f"UPDATE policies_quotausage SET used = {self.mark} {where}"  # noqa: S608 - our own words

    def _like_the_first(self, table: str, without: str = "") -> tuple[dict[str, Any], str]:
        """The first row of a table, as it can be sent, and the statement for one like it."""
        columns = self.connection.execute(f"SELECT * FROM {table} LIMIT 1").description  # noqa: S608 - our own words
        names = [column[0] for column in columns if column[0] != without]
        # PostgreSQL takes what it is sent as text; SQLite has bytes that are none.
        kept = 'CAST("{}" AS text)' if self.is_postgresql else '"{}"'
        values = ", ".join(map(kept.format, names))
        row = self.connection.execute(f"SELECT {values} FROM {table} LIMIT 1").fetchone()  # noqa: S608 - our own words
        listed = ", ".join(f'"{name}"' for name in names)
        marks = ", ".join([self.mark] * len(names))
        insert = f"INSERT INTO {table} ({listed}) VALUES ({marks})"  # noqa: S608 - our own words
        return dict(zip(names, row, strict=True)), insert

    def insert(self) -> None:
        """One row of the record in a transaction of its own."""
        milliseconds = time.time_ns() // 1_000_000
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
        identity = str(uuid.uuid4())
        self.row |= {
            "id": encode(milliseconds, secrets.randbits(32)),
            "created": f"{moment:%F %T.%f}",
            "request_uid": identity,
            "object_uid": identity,
        }
        self.connection.execute(self.insert_row, list(self.row.values()))

    def per_request(self) -> None:
        """Lock, charge, record, commit."""
        quota_id, quota_uid, namespace = secrets.choice(self.quotas)
        where = (self.charge["cluster_id"], quota_id)
        self.connection.execute("BEGIN" if self.is_postgresql else "BEGIN IMMEDIATE")
        used = self.connection.execute(self.lock, where).fetchone()[0]
        used = used if self.is_postgresql else json.loads(used)
        # One pod more; the other amounts would cost the same.
        pods = int(used["pods"].replace("k", "000")) + 1
        self.connection.execute(self.update, (json.dumps({**used, "pods": str(pods)}), *where))
        uids = {"quota_uid": quota_uid, "object_uid": str(uuid.uuid4())}
        self.charge |= {**uids, "namespace": namespace}
        self.connection.execute(self.insert_charge, list(self.charge.values()))
        self.insert()
        self.connection.execute("COMMIT")


def _connect(address: str) -> Any:
    if address.startswith("postgres"):
        utc = "-c timezone=UTC"
        return psycopg.connect(address, autocommit=True, prepare_threshold=1, options=utc)
    path = address.removeprefix("sqlite:///")
    connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def _call() -> decide.Call:
    return decide.Call(
        cluster=review.CLUSTER,
        phase=Phase.VALIDATE,
        client="bench",
        started=time.monotonic_ns(),
        budget=PATIENCE,
    )


def _closed_loop(steps: list[Callable[[], object]], seconds: float) -> dict[str, float]:
    """Each step again and again in a thread of its own; gives how often, in which time."""
    end = time.perf_counter() + seconds

    def work(step: Callable[[], object]) -> int:
        count = 0
        while time.perf_counter() < end:
            step()
            count += 1
        return count

    cpu, begin = time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(len(steps)) as threads:
        counts = list(threads.map(work, steps))
    passed = time.perf_counter() - begin
    return {"count": sum(counts), "seconds": passed, "cpu": time.process_time() - cpu}


def _requests(quota: str) -> Iterator[AdmissionRequest]:
    """Requests that share all but their uids and names, read once for each namespace."""
    read = [parse_request(review.fresh(namespace)) for namespace in NAMESPACES[quota]]
    while True:
        pattern = secrets.choice(read)
        metadata = {**(pattern.object or {})["metadata"], "uid": str(uuid.uuid4())}
        changed = {**(pattern.object or {}), "metadata": metadata}
        yield dataclasses.replace(pattern, uid=str(uuid.uuid4()), object=changed)


def _product(quota: str, count: int) -> Iterator[writer.PendingDecision]:
    """Items for the writer; they are made before the clock runs."""
    policies = snapshot.refresh()
    items = []
    for request, _ in zip(_requests(quota), range(count), strict=False):
        read = ReadReview(request, columns_of(request))
        item = decide._PendingReview(read, call=_call())  # noqa: SLF001 - what a writer takes
        item.prepare(policies)
        items.append(item)
    return iter(items)


def _served(waiting: Iterator[writer.PendingDecision], seconds: float) -> dict[str, float]:
    """Have items written as a web process does, until the time is up or none is left."""

    async def serve() -> dict[str, float]:
        waiters = writer.Waiters(asyncio.get_running_loop())
        cpu, begin = time.process_time(), time.perf_counter()
        end = begin + seconds

        async def call() -> int:
            count = 0
            while time.perf_counter() < end and (item := next(waiting, None)):
                await waiters.outcome(item)
                count += 1
            return count

        counts = await asyncio.gather(*(call() for _ in range(CALLERS)))
        passed, cpu = time.perf_counter() - begin, time.process_time() - cpu
        await waiters.close(PATIENCE)
        return {"count": sum(counts), "seconds": passed, "cpu": cpu}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve())


def _begin(ready: Barrier) -> None:
    global _ready  # noqa: PLW0603 - what a process of the pool is given once
    _ready = ready
    snapshot.current()


def _measure(name: str, quota: str, seconds: float, count: int) -> dict[str, float]:
    """In one process: make ready, wait for the others, measure."""
    if name == figures.WRITER:
        items = _product(quota, count)
        _make_ready()
        return _served(items, seconds)
    usage = QuotaUsage.objects.filter(namespace__in=NAMESPACES[quota])
    quotas = [(row.pk, str(row.quota_uid), row.namespace) for row in usage]
    floors = [Floor(quotas) for _ in range(CALLERS)]
    steps = [each.insert if name == figures.INSERT else each.per_request for each in floors]
    _make_ready()
    measured = _closed_loop(steps, seconds)
    for each in floors:
        each.connection.close()
    return measured


def _make_ready() -> None:
    """Let the clocks of all processes begin together."""
    assert _ready  # noqa: S101 - given to each process as it begins
    settle()  # as web processes do: what was made ready is not searched while the clock runs
    _ready.wait()


def main(rounds: int, seconds: float, pace: str) -> dict[str, Any]:
    """Measure all forms by turns, each in the same processes at the same time."""
    # The product writes the first row, which those of the floors are like.
    decide.decide(parse_request(review.fresh()), call=_call())
    writer.stop()
    connection.close()
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(PROCESSES)
    measured: list[dict[str, Any]] = []
    items = int(FEWEST * seconds)
    with ProcessPoolExecutor(PROCESSES, context, _begin, (ready,)) as processes:
        for _ in range(rounds):
            measured.append({})
            for name, quota in FORMS:
                if pace == "slow" and quota == SPREAD and name != figures.INSERT:
                    continue
                asked = [(name, quota, seconds, items)] * PROCESSES
                found = list(processes.map(_measure, *zip(*asked, strict=True)))
                count, cpu = (sum(each[of] for each in found) for of in ("count", "cpu"))
                rate = count / max(each["seconds"] for each in found)
                label = name if name == figures.INSERT else key(name, quota)
                measured[-1][label] = {"rps": rate, "cpu_us": cpu / count * 1e6}
                if name == figures.WRITER:
                    items = max(items, 2 * int(count / PROCESSES))
    return {"rounds": measured}


if __name__ == "__main__":
    rounds, seconds, _kind, pace = sys.argv[1:]
    print(json.dumps(main(int(rounds), float(seconds), pace)))
