"""Loads: what one is, the program that makes it, and what it measured. Standard library only."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bench import review
from bench.places import BUILT, ROOT, surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PATIENCE: Final = 60.0  # seconds that a client may need beyond its load
SHARE_OF_A_CORE: Final = 0.20  # what a client should take at most, so that it measures others


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a client saw. Latencies in milliseconds, from the intended send time."""

    sent: int = 0
    answered: int = 0
    allowed: int = 0
    denied: int = 0
    wrong: int = 0
    failed: int = 0
    seconds: float = 0.0
    client_cpu: float = 0.0
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    complaints: Sequence[str] = ()

    @property
    def rps(self) -> float:
        """Answers each second."""
        return self.answered / self.seconds if self.seconds else 0.0

    @property
    def client_share(self) -> float:
        """How much of one core the client took."""
        return self.client_cpu / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Client:
    """The program that makes loads."""

    words: Sequence[str]
    name: str

    def make(self, load: Load, *, address: str, path: str, certificate: Path) -> Answers:
        """Make one load; raises ``LoadError`` when the client fails or answers are wrong."""
        plan = json.dumps(_plan(load, address=address, path=path, certificate=certificate))
        done = subprocess.run(  # noqa: S603 - our own words
            self.words,
            input=plan.encode(),
            capture_output=True,
            timeout=load.seconds + PATIENCE,
            check=False,
            cwd=ROOT,
            env=surroundings(),
        )
        if done.returncode:
            raise LoadError(done.stderr.decode()[-2000:])
        answers = Answers(**json.loads(done.stdout))
        if answers.wrong or answers.failed or not answers.answered:
            raise LoadError(f"{address}{path}: {asdict(answers)}")
        return answers


def _plan(load: Load, *, address: str, path: str, certificate: Path) -> dict[str, Any]:
    return {
        **asdict(load),
        "namespaces": list(load.namespaces),
        "address": address,
        "path": path,
        "certificate": certificate.read_text("utf-8"),
        "template": review.template_bytes().decode(),
        "request_uid": review.REQUEST_UID,
        "object_uid": review.OBJECT_UID,
        "namespace": review.NAMESPACE,
        "suffix": review.SUFFIX,
    }


def client() -> Client:
    """The client in Go where there is a compiler, else the slower one in Python."""
    go = shutil.which("go")
    if not go:
        return Client((sys.executable, "-m", "bench.client"), "Python")
    return Client((str(build("load", go)),), "Go")


def build(name: str, go: str) -> Path:
    """Build one of our own Go programs, if it changed; standard library only, no network."""
    source, made = ROOT / "bench" / "peers" / f"{name}.go", BUILT / name
    if made.exists() and made.stat().st_mtime > source.stat().st_mtime:
        return made
    BUILT.mkdir(parents=True, exist_ok=True)
    words = [go, "build", "-trimpath", "-o", str(made), str(source)]
    subprocess.run(words, check=True, env={**surroundings(), "GO111MODULE": "off"})  # noqa: S603
    return made
