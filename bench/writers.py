"""The writer without HTTP, beside the floors of the database.

`python -m bench.writers ROUNDS SECONDS postgresql|sqlite usual|slow` prints decisions each second
as JSON. Two processes of 16 threads each, closed loop; what is written is what the product writes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import secrets
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import django

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from engine.request import AdmissionRequest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from django.db import connection  # noqa: E402 - Django must be set up first

from admission import decide, writer  # noqa: E402
from admission.wire.review import parse_request  # noqa: E402
from bench import names, review  # noqa: E402
from bench.floors import Floor, Pattern  # noqa: E402
from bench.names import HOT, SPREAD, key  # noqa: E402
from engine.request import Phase  # noqa: E402
from policies import snapshot  # noqa: E402
from policies.models import QuotaUsage  # noqa: E402
from portal.serving.application import settle  # noqa: E402 - the same

PROCESSES: Final = 2
THREADS: Final = 16
PATIENCE: Final = 600.0  # seconds: an item may wait as long as the pool of items lasts
FEWEST: Final = 1000  # items that a process is given for each second; more, once it was faster
NAMESPACES: Final = {HOT: review.HOT, SPREAD: review.SPREAD}
FORMS: Final = {
    "usual": (
        (names.INSERT, SPREAD),
        (names.PER_REQUEST, SPREAD),
        (names.PER_REQUEST, HOT),
        (names.WRITER, SPREAD),
        (names.WRITER, HOT),
    ),
    "slow": ((names.INSERT, SPREAD), (names.PER_REQUEST, HOT), (names.WRITER, HOT)),
}


def pattern(kind: str) -> Pattern:
    """Have the product write one row, and keep it as a pattern."""
    _decide_once()
    row, charge = _first("admission_auditevent"), _first("policies_charge")
    quotas = QuotaUsage.objects.filter(namespace__in=[*review.SPREAD, *review.HOT])
    return Pattern(
        kind=kind,
        address=os.environ["GATEHOUSE_DATABASE_URL"],
        cluster=int(charge["cluster_id"] or 0),
        row=row,
        quotas=[(quota.pk, str(quota.quota_uid), quota.namespace) for quota in quotas],
        amounts=charge["amounts"] or "",
    )


def _decide_once() -> None:
    decide.decide(parse_request(review.fresh(review.SPREAD[0])), call=_call())


def _call() -> decide.Call:
    return decide.Call(
        cluster=review.CLUSTER,
        phase=Phase.VALIDATE,
        client="bench",
        started=time.monotonic_ns(),
        budget=PATIENCE,
    )


def _first(table: str) -> dict[str, str | None]:
    """The first row of a table, each column as text."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} LIMIT 1")  # noqa: S608 - our own words
        columns = [f'"{column[0]}"' for column in cursor.description]
        texts = ", ".join(f"CAST({column} AS text)" for column in columns)
        cursor.execute(f"SELECT {texts} FROM {table} LIMIT 1")  # noqa: S608 - our own words
        values = cursor.fetchone()
    return dict(zip((column.strip('"') for column in columns), values, strict=True))


def _closed_loop(steps: list[Callable[[], object]], seconds: float) -> dict[str, float]:
    """Each step again and again in a thread of its own; gives how often, in which time.

    A step that has nothing left to do raises ``StopIteration``, which ends its thread.
    """
    end = time.perf_counter() + seconds

    def work(step: Callable[[], object]) -> int:
        count = 0
        with contextlib.suppress(StopIteration):
            while time.perf_counter() < end:
                step()
                count += 1
        return count

    cpu, begin = time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(len(steps)) as threads:
        counts = list(threads.map(work, steps))
    passed = time.perf_counter() - begin
    return {"count": sum(counts), "seconds": passed, "cpu": time.process_time() - cpu}


def _floors(name: str, quota: str, found: Pattern) -> tuple[list[Callable[[], object]], Any]:
    """A connection and a statement for each thread, and how to hang up."""
    kept = [one for one in found.quotas if one[2] in NAMESPACES[quota]]
    floors = [Floor(dataclasses.replace(found, quotas=kept)) for _ in range(THREADS)]
    steps = [floor.insert if name == names.INSERT else floor.per_request for floor in floors]
    return list(steps), lambda: [floor.close() for floor in floors]


def _requests(quota: str) -> Iterator[AdmissionRequest]:
    """Requests that share all but their uids and names, read once for each namespace."""
    read = [parse_request(review.fresh(namespace)) for namespace in NAMESPACES[quota]]
    while True:
        pattern = secrets.choice(read)
        metadata = {**(pattern.object or {})["metadata"], "uid": str(uuid.uuid4())}
        changed = {**(pattern.object or {}), "metadata": metadata}
        yield dataclasses.replace(pattern, uid=str(uuid.uuid4()), object=changed)


def _items(quota: str, count: int) -> Iterator[writer.PendingDecision]:
    """Items as requests' threads hand them over, made before the clock runs."""
    policies = snapshot.refresh()
    found = []
    for request, _ in zip(_requests(quota), range(count), strict=False):
        item = decide._PendingReview(request, call=_call())  # noqa: SLF001 - the writer's food
        item.prepare(policies)
        found.append(item)
    return iter(found)


def _product(quota: str, count: int) -> list[Callable[[], object]]:
    waiting, taking = _items(quota, count), threading.Lock()

    def step() -> None:
        with taking:
            item = next(waiting)
        writer.submit(item)
        item.wait()

    return [step] * THREADS


def child(pipe: Connection, found: Pattern) -> None:
    """One process: makes ready what it is told, measures when it is told, until it is told no more.

    A started process of its own; Django is set up by this module's import.
    """
    snapshot.current()
    last = 0
    while (told := pipe.recv()) is not None:
        name, quota, seconds = told
        if name == names.WRITER:
            steps, end = _product(quota, max(int(FEWEST * seconds), 2 * last)), writer.stop
        else:
            steps, end = _floors(name, quota, found)
        settle()  # as web processes do: what was made ready is not searched while the clock runs
        pipe.send("ready")
        pipe.recv()
        measured = _closed_loop(steps, seconds)
        pipe.send(measured)
        last = int(measured["count"]) if name == names.WRITER else last
        end()
    writer.stop()


def _measure(pipes: list[Connection], told: tuple[str, str, float]) -> dict[str, float]:
    for pipe in pipes:
        pipe.send(told)
    for pipe in pipes:
        pipe.recv()
    for pipe in pipes:
        pipe.send("go")
    found = [pipe.recv() for pipe in pipes]
    count = sum(each["count"] for each in found)
    cpu = sum(each["cpu"] for each in found)
    seconds = max(each["seconds"] for each in found)
    return {"rps": count / seconds, "cpu_us": cpu / count * 1e6}


def main(rounds: int, seconds: float, kind: str, pace: str) -> dict[str, Any]:
    """Measure all forms by turns, each in the same two processes."""
    found, context = pattern(kind), multiprocessing.get_context("spawn")
    connection.close()
    pipes, processes = [], []
    for _ in range(PROCESSES):
        ours, theirs = context.Pipe()
        process = context.Process(target=child, args=(theirs, found), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    measured = [
        {_name(name, quota): _measure(pipes, (name, quota, seconds)) for name, quota in FORMS[pace]}
        for _ in range(rounds)
    ]
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join()
    return {"rounds": measured, "skipped": {}}


def _name(name: str, quota: str) -> str:
    return name if name == names.INSERT else key(name, quota)


if __name__ == "__main__":
    rounds, seconds, kind, pace = sys.argv[1:]
    print(json.dumps(main(int(rounds), float(seconds), kind, pace)))
