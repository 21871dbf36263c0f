"""The load client where there is no Go: same plan in, same figures out, more CPU.

One thread for each connection. It takes several times the CPU of the one in Go.
"""

from __future__ import annotations

import http.client
import json
import math
import queue
import random
import resource
import socket
import ssl
import sys
import threading
import time
import uuid
from typing import Any, Final

TIMEOUT: Final = 15.0
VERDICTS: Final = {
    "allowed": (b'"allowed":true', b'"allowed": true'),
    "denied": (b'"allowed":false', b'"allowed": false'),
}


class Worker:
    """One connection; it dials again after a failure."""

    def __init__(self, plan: dict[str, Any], context: ssl.SSLContext) -> None:
        self.plan, self.context = plan, context
        self.template = plan["template"].encode()
        self.head = (
            f"POST {plan['path']} HTTP/1.1\r\nHost: {plan['address']}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, */*\r\n"
            f"Content-Length: {len(self.template)}\r\n\r\n"
        ).encode()
        self.connection: ssl.SSLSocket | None = None
        self.counts = dict.fromkeys(("sent", "allowed", "denied", "wrong", "failed"), 0)
        self.latencies: list[float] = []
        self.complaints: list[str] = []

    def dial(self) -> ssl.SSLSocket:
        """Give the connection, opened where there is none."""
        if self.connection is None:
            host, _, port = self.plan["address"].partition(":")
            plain = socket.create_connection((host, int(port)), TIMEOUT)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connection = self.context.wrap_socket(plain, server_hostname=host)
        return self.connection

    def body(self, uid: str) -> bytes:
        """A review that nobody saw before."""
        plan, body = self.plan, self.template
        namespace = random.choice(plan["namespaces"])  # noqa: S311 - a load, no secret
        for mark, text in (
            (plan["request_uid"], uid),
            (plan["object_uid"], str(uuid.uuid4())),
            (plan["namespace"], namespace),
            (plan["suffix"], uid[:5]),
        ):
            body = body.replace(mark.encode(), text.encode())
        return body

    def ask(self, intended: float) -> None:
        """Send one review and judge its answer."""
        uid = str(uuid.uuid4())
        self.counts["sent"] += 1
        try:
            status, answer = self.exchange(self.head + self.body(uid))
        except (OSError, http.client.HTTPException) as error:
            self.hang_up()
            self.note("failed", repr(error))
            return
        self.latencies.append((time.monotonic() - intended) * 1000)
        if status != 200:  # noqa: PLR2004 - HTTP's own number
            self.note("failed", f"HTTP {status}: {answer[:200]!r}")
            return
        self.judge(uid, answer)

    def judge(self, uid: str, answer: bytes) -> None:
        """Count the verdict."""
        for verdict, words in VERDICTS.items():
            if uid.encode() in answer and any(word in answer for word in words):
                self.counts[verdict] += 1
                return
        self.note("wrong", f"no verdict for {uid}: {answer[:200]!r}")

    def note(self, what: str, text: str) -> None:
        """Count a failure."""
        self.counts[what] += 1
        self.complaints = [*self.complaints, text][:3]

    def exchange(self, message: bytes) -> tuple[int, bytes]:
        """Send and receive; raises ``OSError`` or ``HTTPException`` for what is no answer."""
        connection = self.dial()
        connection.sendall(message)
        response = http.client.HTTPResponse(connection, method="POST")
        response.begin()
        body = response.read()
        if response.will_close:
            self.hang_up()
        return response.status, body

    def hang_up(self) -> None:
        """Close the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def closed_loop(plan: dict[str, Any], workers: list[Worker]) -> None:
    """Each connection asks again as soon as it is answered."""
    end = time.monotonic() + plan["seconds"]
    share = math.ceil(plan["limit"] / len(workers)) if plan["limit"] else math.inf

    def work(worker: Worker) -> None:
        while time.monotonic() < end and worker.counts["sent"] < share:
            worker.ask(time.monotonic())

    run([threading.Thread(target=work, args=(worker,)) for worker in workers])


def open_loop(plan: dict[str, Any], workers: list[Worker]) -> None:
    """Requests arrive by themselves, whoever is still waiting."""
    arrivals: queue.SimpleQueue[float | None] = queue.SimpleQueue()

    def work(worker: Worker) -> None:
        while (intended := arrivals.get()) is not None:
            worker.ask(intended)

    def arrive() -> None:
        following = time.monotonic()
        end = following + plan["seconds"]
        while following < end:
            following += random.expovariate(plan["rate"])
            time.sleep(max(0.0, following - time.monotonic()))
            arrivals.put(following)
        for _ in workers:
            arrivals.put(None)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    run([*threads, threading.Thread(target=arrive)])


def run(threads: list[threading.Thread]) -> None:
    """Start all, wait for all."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def summary(latencies: list[float]) -> dict[str, float]:
    """Mean, percentiles and maximum."""
    if not latencies:
        return {}
    ordered = sorted(latencies)
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    found = {n: ordered[math.ceil(s * len(ordered)) - 1] for n, s in shares.items()}
    return {"mean": sum(ordered) / len(ordered), **found, "max": ordered[-1]}


def cpu() -> float:
    """CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Read the plan, make the load, write the figures."""
    plan = json.load(sys.stdin)
    context = ssl.create_default_context(cadata=plan["certificate"])
    workers = [Worker(plan, context) for _ in range(plan["connections"])]
    for worker in workers:
        worker.dial()
    before, begin = cpu(), time.monotonic()
    (open_loop if plan["rate"] else closed_loop)(plan, workers)
    seconds = time.monotonic() - begin
    counts = {name: sum(w.counts[name] for w in workers) for name in workers[0].counts}
    figures = {
        **counts,
        "answered": counts["allowed"] + counts["denied"],
        "seconds": seconds,
        "client_cpu": cpu() - before,
        "latency_ms": summary([latency for w in workers for latency in w.latencies]),
        "complaints": [text for w in workers for text in w.complaints],
    }
    for worker in workers:
        worker.hang_up()
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
