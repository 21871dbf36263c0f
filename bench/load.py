"""Loads: what one is, the client that makes it, and what it measured. Standard library only."""

from __future__ import annotations

import http.client
import itertools
import json
import math
import random
import shutil
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from bench import review
from bench.machine import BUILT, ROOT, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PATIENCE: Final = 60.0  # seconds that a client may need beyond its load


class LoadError(RuntimeError):
    """A load that could not be made, or whose answers cannot count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One load: closed loop, or Poisson arrivals at ``rate`` each second where it is not zero.

    ``limit`` ends a closed loop after so many requests; 0 does not.
    """

    namespaces: Sequence[str] = review.SPREAD
    connections: int = 32
    rate: float = 0.0
    seconds: float = 2.0
    limit: int = 0

    def arrivals(self) -> Iterator[float]:
        """When each request is due: at once in a closed loop, by themselves in an open one."""
        due = time.monotonic()
        end = due + self.seconds
        while due < end:
            due = due + random.expovariate(self.rate) if self.rate else time.monotonic()
            time.sleep(max(0.0, due - time.monotonic()))
            yield due


@dataclass(slots=True, kw_only=True)
class Answers:
    """What a client saw. Latencies in milliseconds, from the intended send time."""

    allowed: int = 0
    denied: int = 0
    failed: int = 0
    seconds: float = 0.0
    client_cpu: float = 0.0
    latencies: list[float] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def answered(self) -> int:
        """How many reviews came back with a verdict."""
        return self.allowed + self.denied

    @property
    def rps(self) -> float:
        """Answers each second."""
        return self.answered / self.seconds

    def percentile(self, share: float) -> float:
        """The latency that this share of the answers did not exceed."""
        return sorted(self.latencies)[math.ceil(share * len(self.latencies)) - 1]


def make(asked: Load, *, address: str, path: str, certificate: Path) -> Answers:
    """Make one load, in Go if it is here; raises ``LoadError`` when answers fail or are wrong."""
    client = in_go if shutil.which("go") else in_python
    answers = client(asked, address, path, certificate)
    if answers.failed or not answers.answered:
        raise LoadError(f"{address}{path}: {answers.failed} failed: {answers.complaints[:3]}")
    return answers


def in_go(asked: Load, address: str, path: str, certificate: Path) -> Answers:
    """A process of `peers/load.go`."""
    plan = {
        **asdict(asked),
        "address": address,
        "path": path,
        "certificate": certificate.read_text("utf-8"),
        "template": review.template_bytes().decode(),
        "request_uid": review.REQUEST_UID,
        "object_uid": review.OBJECT_UID,
        "namespace": review.NAMESPACE,
        "suffix": review.SUFFIX,
    }
    done = subprocess.run(  # noqa: S603 - our own words
        [str(build())],
        input=json.dumps(plan).encode(),
        capture_output=True,
        timeout=asked.seconds + PATIENCE,
        check=False,
        env=surroundings(),
    )
    if done.returncode:
        raise LoadError(done.stderr.decode()[-2000:])
    return Answers(**json.loads(done.stdout))


def build() -> Path:
    """Build our own Go program, if it changed; standard library only, no network."""
    source, made = ROOT / "bench" / "peers" / "load.go", BUILT / "load"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        BUILT.mkdir(parents=True, exist_ok=True)
        words = ["go", "build", "-trimpath", "-o", str(made), str(source)]
        subprocess.run(words, check=True, env={**surroundings(), "GO111MODULE": "off"})  # noqa: S603
    return made


def in_python(asked: Load, address: str, path: str, certificate: Path) -> Answers:
    """A thread for each connection, which takes several times the CPU."""
    found, lock = Answers(), threading.Lock()
    due = itertools.islice(asked.arrivals(), asked.limit or None)
    context = ssl.create_default_context(cafile=str(certificate))

    def work(_number: int) -> None:
        line = http.client.HTTPSConnection(address, timeout=PATIENCE, context=context)
        while True:
            with lock:  # whoever has it waits for the next arrival
                intended = next(due, None)
            if intended is None:
                return line.close()
            body = review.fresh(random.choice(asked.namespaces))  # noqa: S311 - no secret
            line.request("POST", path, body, {"Content-Type": "application/json"})
            text = line.getresponse().read()
            found.latencies.append((time.monotonic() - intended) * 1000)
            response = json.loads(text)["response"]
            if response["uid"].encode() not in body:
                raise LoadError(f"an answer to another review: {text[:200]!r}")
            with lock:
                found.allowed += response["allowed"]
                found.denied += not response["allowed"]

    cpu, begin = time.process_time(), time.monotonic()
    with ThreadPoolExecutor(asked.connections) as threads:
        list(threads.map(work, range(asked.connections)))
    found.seconds, found.client_cpu = time.monotonic() - begin, time.process_time() - cpu
    return found
