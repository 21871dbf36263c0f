"""The servers that are asked: started once, with TLS, each in a session of its own."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import shutil
import ssl
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import figures, load, review
from bench.machine import BUILT, ROOT, share_of, surroundings, usage_of
from tests.faults.database import bound
from tests.processes import free_port, members, running, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WORKERS: Final = os.cpu_count() or 1
ECHO_THREADS: Final = 8
BASELINE_THREADS: Final = 16
IDLE_FOR: Final = 60  # seconds: few connections end between two turns
# One key for all processes of a run, so that one credential opens all databases.
SECRET_KEY: Final = secrets.token_hex(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is started: a command with ``{port}``, ``{certificate}`` and ``{key}`` in its words.

    ``database`` names the database it works on; empty for those that keep nothing. ``folder`` is
    the checkout whose code runs.
    """

    name: str
    words: Sequence[str]
    path: str = "/"
    database: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path = ROOT


@dataclass(slots=True)
class Server:
    """A running subject; ``certificate`` is a file."""

    subject: Subject
    port: int
    process: subprocess.Popen[bytes]
    certificate: Path
    log: Path

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def cpu(self) -> float:
        """CPU seconds of all its processes so far."""
        return sum(usage_of(process).cpu for process in members(self.process.pid))

    def memory(self) -> int:
        """Bytes of all its processes; what they share counts once."""
        return sum(share_of(process) for process in members(self.process.pid))

    def load(self, asked: load.Load) -> load.Answers:
        """Make one load."""
        place = {"address": self.address, "path": self.subject.path}
        return load.make(asked, **place, certificate=self.certificate)

    def ask(self, body: bytes) -> dict[str, Any]:
        """Send one review over a connection of its own; gives the answer's ``response``.

        Raises ``OSError`` while nobody listens.
        """
        context = ssl.create_default_context(cafile=str(self.certificate))
        line = http.client.HTTPSConnection(self.address, timeout=20, context=context)
        with contextlib.closing(line):
            line.request("POST", self.subject.path, body, {"Content-Type": "application/json"})
            answer = line.getresponse()
            found = json.loads(answer.read()) if answer.status == http.HTTPStatus.OK else {}
        return dict(found.get("response", {}))


def make_certificate(folder: Path) -> Path:
    """A throwaway certificate for 127.0.0.1, with its key beside it."""
    words = [sys.executable, "-m", "portal.dev.self_signed", "--host", "127.0.0.1"]
    words += ["--folder", str(folder)]
    subprocess.run(words, cwd=ROOT, env=surroundings(), check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own words
    return folder / "tls.crt"


def uvicorn(target: str, *options: str) -> list[str]:
    """The web server's words; the same TLS, workers and HTTP for all."""
    return [
        str(Path(sys.executable).with_name("uvicorn")),
        *("--interface", "asgi3", "--loop", "uvloop", "--http", "httptools"),
        *("--ws", "none", "--lifespan", "off", "--log-level", "warning"),
        *("--no-access-log", "--no-server-header", "--no-proxy-headers"),
        *("--host", "127.0.0.1", "--port", "{port}", "--workers", str(WORKERS)),
        *("--ssl-certfile", "{certificate}", "--ssl-keyfile", "{key}"),
        *("--timeout-keep-alive", str(IDLE_FOR)),
        *options,
        target,
    ]


def django(name: str, subject: str, *, threads: int = ECHO_THREADS, **more: Any) -> Subject:
    """A subject that is served by Django, in threads behind the same web server."""
    words = uvicorn("bench.subjects.threads:django", "--factory")
    settings = {"DJANGO_SETTINGS_MODULE": "bench.subjects.settings", "SUBJECT": subject}
    around = {**settings, "SUBJECT_THREADS": str(threads), **more.pop("around", {})}
    return Subject(name=name, words=words, environment=around, **more)


def floors() -> list[Subject]:
    """The echoes, and the engine without a database; the lean one beside the product."""
    return [
        Subject(name=figures.RAW, words=uvicorn("bench.subjects:echo")),
        django(figures.ENGINE, "engine", path="/engine"),
        django(figures.DEFAULT, "default", path="/default"),
        django(figures.LEAN, "lean", path="/lean"),
    ]


def product(database: str, secret: str, *, name: str = figures.PRODUCT) -> Subject:
    """The product as it is served: its own entry, its own numbers of processes and threads."""
    return Subject(
        name=name,
        words=[sys.executable, "-m", "portal.serve"],
        path=f"/admission/{review.CLUSTER}/{secret}/validate",
        database=database,
        environment={
            "GATEHOUSE_LISTEN_PORT": "{port}",
            "GATEHOUSE_TLS_CERTIFICATE": "{certificate}",
            "GATEHOUSE_TLS_KEY": "{key}",
            "GATEHOUSE_DRAIN_SECONDS": "0",
        },
    )


def baselines(secret: str) -> list[Subject]:
    """The ORM baseline in both of its forms, each on a database of its own."""
    counts = {"GATEHOUSE_WEB_WORKERS": str(WORKERS), "GATEHOUSE_WEB_THREADS": str(BASELINE_THREADS)}
    more = {"threads": BASELINE_THREADS, "path": f"/admission/{review.CLUSTER}/{secret}/validate"}
    return [
        django(name, "baseline", database=form, around={"BASELINE_FORM": form, **counts}, **more)
        for name, form in ((figures.LOADED, "loaded"), (figures.CACHED, "cached"))
    ]


def peers() -> tuple[list[Subject], dict[str, str]]:
    """OPA twice and Go's floor, and why one of them is not here."""
    found, skipped = [], {}
    if shutil.which("go"):
        words = [str(load.build()), "127.0.0.1:{port}", "{certificate}", "{key}"]
        found.append(Subject(name=figures.GO, words=words))
    else:
        skipped[figures.GO] = "there is no Go compiler here"
    opa = BUILT / "opa"
    if opa.exists():
        words = [str(opa), "run", "--server", "--addr", "127.0.0.1:{port}"]
        words += ["--tls-cert-file", "{certificate}", "--tls-private-key-file", "{key}"]
        words += ["--log-level", "error", "--skip-version-check", "bench/peers/policy.rego"]
        logged = [*words, "--set", "decision_logs.console=true"]
        found.append(Subject(name=figures.OPA_OFF, words=words))
        found.append(Subject(name=figures.OPA_ON, words=logged))
    else:
        skipped["OPA"] = "it is not built; run: make bench-peers"
    return found, skipped


@contextlib.contextmanager
def started(
    subject: Subject, *, folder: Path, certificate: Path, address: str = ""
) -> Iterator[Server]:
    """One subject, on a port of its own, without anybody's settings; it may not answer yet."""
    port = free_port()
    own = folder / "".join(c if c.isalnum() else "-" for c in subject.name)
    (own / "metrics").mkdir(parents=True, exist_ok=True)
    around = surroundings(
        **product_settings(own, address),
        GATEHOUSE_LOG_LEVEL="ERROR",
        PROMETHEUS_MULTIPROC_DIR=str(own / "metrics"),
    )
    names = {"port": port, "certificate": certificate, "key": certificate.with_suffix(".key")}
    around |= {name: text.format(**names) for name, text in subject.environment.items()}
    # The checkout is entered by env: the starter itself knows but one folder.
    words = ["env", "--chdir", str(subject.folder), *(w.format(**names) for w in subject.words)]
    with running(bound(words, "TERM"), around, own / "log") as process:
        yield Server(subject, port, process, certificate, own / "log")


def product_settings(folder: Path, address: str) -> dict[str, str]:
    """The settings of any process that works with the product's code on one database."""
    return {
        "GATEHOUSE_VAR": str(folder),
        "GATEHOUSE_SECRET_KEY": SECRET_KEY,
        "GATEHOUSE_EXTERNAL_URL": "https://127.0.0.1",
        **({"GATEHOUSE_DATABASE_URL": address} if address else {}),
    }


def wait_until_it_answers(server: Server) -> None:
    """Ask until all workers had a chance to answer; raises with the log's end when it ends."""

    def answers() -> bool:
        if server.process.poll() is not None:
            text = server.log.read_text("utf-8", "replace")[-3000:]
            raise load.LoadError(f"{server.subject.name} does not answer:\n{text}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            return bool(server.ask(review.fresh()).get("allowed"))
        return False

    for _ in range(2 * WORKERS):
        wait_for(answers)


def probes() -> list[bytes]:
    """A review that is allowed, two that are to be refused, and one for a full quota."""
    refused = (review.fresh(review=each) for each in review.refused().values())
    return [review.fresh(), *refused, review.fresh(review.FULL[0])]


def verdicts(server: Server, bodies: Sequence[bytes]) -> list[tuple[Any, ...]]:
    """Verdict, code and words for each review; the decision's own name is left out of the words."""
    found = []
    for response in map(server.ask, bodies):
        status = response.get("status") or {}
        words = str(status.get("message", "")).partition(" (decision")[0]
        found.append((response.get("allowed"), status.get("code"), words))
    return found
